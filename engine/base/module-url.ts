// Returns the URL of a compiled module from which a thread is started. If the caller itself runs from TypeScript
// source, as under the test runner, the URL is that of the module in the build directory.

const source = /^(.*)\/((?:engine|pipeline|connectors|deploy)\/.*)\.ts$/

/** URL of a compiled module by its path relative to the module at `here`; for a source, the one in the build. */
export function compiledModule(here: string, path: string): URL {
  const [, home, module] = source.exec(here) ?? []
  return new URL(path, module === undefined ? here : `${home}/dist/${module}.js`)
}
