// Locates compiled modules to start threads from, also under a test runner that loads TypeScript.

const source = /^(.*)\/((?:engine|pipeline|connectors|deploy)\/.*)\.ts$/

/** URL of a compiled module by its path relative to the module at `here`; for a source, the one in the build. */
export function compiledModule(here: string, path: string): URL {
  const [, home, module] = source.exec(here) ?? []
  return new URL(path, module === undefined ? here : `${home}/dist/${module}.js`)
}
