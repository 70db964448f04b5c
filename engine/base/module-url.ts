// Where compiled modules lie: threads are started from them, also under a test runner that loads TypeScript.

const source = /^(.*)\/((?:engine|pipeline|connectors|deploy)\/.*)\.ts$/

/** A compiled module by its path from the one at `here`, a module's own URL; that of a source leads into the build. */
export function compiledModule(here: string, path: string): URL {
  const [, home, module] = source.exec(here) ?? []
  return new URL(path, module === undefined ? here : `${home}/dist/${module}.js`)
}
