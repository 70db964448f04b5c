// `node deploy/build.js [programs | docs]`: compiles the sources into dist/, programs as well as single modules. With
// `programs` it compiles the programs only; with `docs` it only renders the documentation. Types are removed but not
// checked, which `npm run check` does. Plain JavaScript, because it runs before anything is compiled. The only file
// that uses the package rolldown.
//
//   dist/deploy/cli.js                  a program (the command line tool, each thread): loads its script
//   dist/packed/<name>-<hash>.cjs       scripts: a program's hundreds of modules in one, which take half the time and
//                                       memory in each thread; and code that programs share or load on demand. They are
//                                       CommonJS, because Node 20 cannot keep the compiled code of other modules
//   dist/packed/load-program.js         loads scripts: deploy/load-program.js
//   dist/packed/<name>.cjs              code of npm packages that are not dependencies of the published package
//   dist/THIRD-PARTY-LICENSES.txt       the licences of these packages
//   dist/commit.txt                     the commit, if this is a clone, for `penstock --version` of the package
//   dist/deploy/embedded/*.d.ts         type declarations of `import .. from 'penstock'`
//   dist/docs/                          the documentation as HTML: deploy/build-docs.js
//   dist/console/                       the web console: gateways/console/main.ts as one file, and its page and styles
//   dist/<path>.js                      every other module, for tests and the programs among them
//
// Bundling does not change `import.meta.url`: it refers to the module's own path below dist/. Files of an earlier build
// that this one does not write are removed, and so is the compiled code of its scripts.

import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { builtinModules, createRequire } from 'node:module'
import { dirname, join, posix, relative, sep } from 'node:path'
import { rolldown } from 'rolldown'
import { isolatedDeclarationSync } from 'rolldown/experimental'
import { transformSync } from 'rolldown/utils'
import { renderDocs } from './build-docs.js'
import { docsState, forgetBuilt, home, markBuilt, programs, sourceFiles, sourcesState } from './build-state.js'

const dist = join(home, 'dist')

/** Doc comments stay in the sources; those that licences ask for go along. */
const comments = { legal: true, jsdoc: false, annotation: false }

const banner = '// Packed by deploy/build.js.'
const placeMark = 'penstock-place:'
const transform = { target: 'es2023', typescript: { onlyRemoveTypeImports: true } }
const options = { cwd: home, platform: 'node', tsconfig: false, transform }
const { dependencies } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'))

/** Replacement of the deprecated `new Buffer(..)`. */
const makeBuffer =
  "const makeBuffer = (it, ...more) => typeof it === 'number' ? Buffer.alloc(it) : Buffer.from(it, ...more);\n"

/** Matches calls that require a package; rolldown writes other quotes than the sources. */
const requireCall =
  /((?:\brequire(?:\.resolve)?|\bcreateRequire\([^()]*(?:\([^()]*\))?[^()]*\)))\(\s*['"]([^'".][^'"]*)['"],?\s*\)/g

/** Paths below dist/ that this build has written. */
const written = new Set()

try {
  const scope = process.argv[2] ?? 'modules'
  if (scope === 'docs') buildDocs()
  else await build(scope === 'programs' ? 'programs' : 'modules')
} catch (error) {
  process.stderr.write(`${reportOf(error)}\n`)
  process.exitCode = 1
}

async function build(scope) {
  const begin = performance.now()
  const files = sourceFiles(scope)
  const states = { programs: sourcesState('programs'), modules: sourcesState('modules') }
  process.stderr.write(`penstock: building ${files.length} modules ..\n`)
  forgetBuilt()
  const packed = await packPackages(await packPrograms())
  const shown = await packConsole()
  write('THIRD-PARTY-LICENSES.txt', licences([...packed, ...shown]))
  writeCommit()
  if (scope === 'modules') compileModules(files)
  writeDeclarations()
  buildDocs()
  removeStale()
  rmSync(join(dist, '.code'), { recursive: true, force: true })
  markBuilt('programs', states.programs)
  if (scope === 'modules') markBuilt('modules', states.modules)
  process.stderr.write(`penstock: built in ${((performance.now() - begin) / 1000).toFixed(1)} s\n`)
}

function buildDocs() {
  const state = docsState()
  renderDocs(write)
  markBuilt('docs', state)
}

/** Source errors with their line; any other error is a bug of the build, with its stack. */
function reportOf(error) {
  const errors = error.errors ?? []
  if (errors.length === 0) return error.stack
  return errors.map(({ message, id }) => `${id ?? ''}\n${message}`).join('\n')
}

function write(path, content) {
  written.add(path)
  const file = join(dist, path)
  if (existsSync(file) && readFileSync(file).equals(Buffer.from(content))) return
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, content)
}

function writeCommit() {
  if (!existsSync(join(home, '.git'))) return
  const { stdout, status } = spawnSync('git', ['-C', home, 'rev-parse', '--short=12', 'HEAD'], { encoding: 'utf8' })
  if (status === 0) write('commit.txt', stdout)
}

/** Bundles the programs; returns the packages to bundle beside them. */
async function packPrograms() {
  const required = new Map()
  const build = await rolldown({
    ...options,
    input: Object.fromEntries(programs.map((program) => [program, join(home, `${program}.ts`)])),
    resolve: { extensionAlias: { '.js': ['.ts', '.js'] } },
    external: (id) => !/^[./]/.test(id) && !/^[A-Z]:/i.test(id),
    plugins: [placesPlugin(required)],
    preserveEntrySignatures: 'strict',
  })
  const { output } = await build.generate({
    format: 'cjs',
    entryFileNames: ({ name }) => `packed/${name.replaceAll('/', '-')}-[hash].cjs`,
    chunkFileNames: 'packed/[name]-[hash].cjs',
    comments,
    banner,
  })
  await build.close()
  checkOrder(output)
  for (const chunk of output) {
    checkInstalled(chunk)
    write(chunk.fileName, escapeCharacters(setPlaces(plainExports(chunk))))
    if (chunk.isEntry) write(`${chunk.name}.js`, programLoader(chunk))
  }
  write('packed/load-program.js', readFileSync(join(home, 'deploy', 'load-program.js'), 'utf8'))
  return required
}

/** Throws if scripts require each other in a circle: exports are assigned when a script ends. */
function checkOrder(chunks) {
  const required = new Map(chunks.map(({ fileName, imports }) => [fileName, imports]))
  const ended = new Set()
  const visit = (name, path) => {
    if (path.includes(name)) throw new Error(`scripts require each other: ${[...path, name].join(', ')}`)
    if (ended.has(name)) return
    for (const next of required.get(name) ?? []) visit(next, [...path, name])
    ended.add(name)
  }
  for (const { fileName } of chunks) visit(fileName, [])
}

/** Exports values instead of a function for each of them, which every use in another script would call. */
function plainExports({ code, fileName, exports, ...chunk }) {
  const names = []
  const getter =
    /^Object\.defineProperty\(exports, "([\w$]+)", \{\s+enumerable: true,\s+get: function ?\(\) \{\s+return ([\w$]+);\s+\}\s+\}\);\n?/gm
  const left = code.replace(getter, (_, name, local) => {
    names.push(name === local ? name : `${name}: ${local}`)
    return ''
  })
  return {
    ...chunk,
    fileName,
    code: names.length === 0 ? code : `${left}\nmodule.exports = { ${names.join(', ')} };\n`,
  }
}

/** The module by which Node runs or imports a program. */
function programLoader({ name, fileName, exports }) {
  const loader = posix.relative(posix.dirname(name), 'packed/load-program.js')
  // Commands of the tool run different functions.
  const code =
    name === 'deploy/cli'
      ? "`deploy-cli-${/^[a-z]+$/.exec(process.argv[2] ?? '') ?? 'other'}`"
      : `'${name.replaceAll('/', '-')}'`
  const load = `loadProgram('${fileName}', ${code})`
  const lines = [banner, `import { loadProgram } from '${loader}'`]
  if (exports.length === 0) lines.push(load)
  else lines.push(`const { ${exports.join(', ')} } = ${load}`, `export { ${exports.join(', ')} }`)
  return `${lines.join('\n')}\n`
}

/**
 * Plugin that records the path of each module before bundling. If a source requires a package that is not a dependency
 * of the published package, the call is redirected to a file of dist/packed/, which is added to `required`: specifiers
 * by path.
 */
function placesPlugin(required) {
  const transform = (code, id) => {
    if (!code.includes('import.meta.url')) return null
    const own = relative(home, id).replaceAll(sep, '/').replace(/\.ts$/, '.js')
    const packed = code.replace(requireCall, (whole, callee, specifier) => {
      if (isInstalled(specifier) || callee.endsWith('.resolve')) return whole
      const path = `packed/${specifier.replace(/\.js$/, '').replaceAll(/\W+/g, '-').replace(/^-/, '')}.cjs`
      required.set(path, specifier)
      return `${callee}('${posix.relative(posix.dirname(own), path)}')`
    })
    return packed.replaceAll('import.meta.url', `new URL('${placeMark}${own}', scriptUrl).href`)
  }
  return { name: 'places', transform }
}

/** Throws if a bundle needs a package that the published package would not have. */
function checkInstalled({ isEntry, name, fileName, imports, dynamicImports, code }) {
  const calls = [...code.matchAll(requireCall)].map(([, , specifier]) => specifier)
  for (const specifier of [...imports, ...dynamicImports, ...calls]) {
    if (specifier.startsWith('packed/') || isInstalled(specifier)) continue
    const file = isEntry ? `${name}.js` : fileName
    throw new Error(`dist/${file} needs ${specifier}, which is neither among the dependencies nor packed`)
  }
}

/** Whether the published package has the dependency, or it is a module of Node. */
function isInstalled(specifier) {
  const [name = ''] = /^(?:@[^/]+\/)?[^/]+/.exec(specifier) ?? []
  return name in dependencies || name.startsWith('node:') || builtinModules.includes(name)
}

function setPlaces({ code, fileName }) {
  return code.replace(/penstock-place:([\w./-]+)/g, (_, place) => {
    const path = posix.relative(posix.dirname(fileName), place)
    return path.startsWith('.') ? path : `./${path}`
  })
}

/**
 * Escapes non-ASCII characters: a single one beyond Latin-1 doubles the memory that V8 uses for the file in each
 * thread.
 */
function escapeCharacters(code) {
  return code.replace(/\P{ASCII}/gu, escaped)
}

/** Escapes code units, which is valid within strings, templates and regular expressions. */
function escaped(character) {
  return Array.from({ length: character.length }, (_, index) => {
    return `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`
  }).join('')
}

/**
 * Bundles each required package into one file, with shared code in separate ones; returns the paths of their modules. The entries are virtual modules that
 * nothing else imports, so that their exports are exactly those of the package.
 */
async function packPackages(required) {
  if (required.size === 0) return []
  const entry = (path) => `\0${path}`
  const { resolve } = createRequire(import.meta.url)
  const codes = new Map(
    [...required].map(([path, name]) => [entry(path), `module.exports = require('${resolve(name)}')`]),
  )
  const build = await rolldown({
    ...options,
    input: Object.fromEntries([...required.keys()].map((path) => [path, entry(path)])),
    // Some packages require optional ones and handle their absence.
    logLevel: 'silent',
    plugins: [
      {
        name: 'entries',
        resolveId: (id) => (codes.has(id) ? id : null),
        load: (id) => codes.get(id) ?? null,
        // Outside of node_modules/, Node warns about this constructor.
        transform: (code) =>
          code.includes('new Buffer(') ? makeBuffer + code.replaceAll('new Buffer(', 'makeBuffer(') : null,
      },
    ],
  })
  const { output } = await build.generate({
    format: 'cjs',
    entryFileNames: '[name]',
    chunkFileNames: 'packed/[name]-[hash].cjs',
    // Whitespace alone: names stay, so that stack traces can be read.
    minify: { compress: false, mangle: false, codegen: { removeWhitespace: true } },
    comments,
    banner,
  })
  await build.close()
  for (const chunk of output) write(chunk.fileName, escapeCharacters(chunk.code))
  return output.flatMap(({ modules }) => Object.keys(modules))
}

/** Bundles the web console for browsers; returns the paths of its modules. */
async function packConsole() {
  const [main, page] = ['main.ts', 'page'].map((name) => join(home, 'gateways/console', name))
  if (!existsSync(main)) return []
  const build = await rolldown({
    ...options,
    platform: 'browser',
    input: main,
    resolve: { extensionAlias: { '.js': ['.ts', '.js'] } },
  })
  const { output } = await build.generate({ format: 'esm', minify: true, codeSplitting: false })
  await build.close()
  const [{ code, modules }] = output
  write('console/console.js', code)
  for (const name of readdirSync(page)) write(`console/${name}`, readFileSync(join(page, name), 'utf8'))
  const charts = dirname(createRequire(import.meta.url).resolve('uplot'))
  write('console/uplot.css', readFileSync(join(charts, 'uPlot.min.css'), 'utf8'))
  return Object.keys(modules)
}

/** Licence texts of the packages that modules belong to; a package without one ends the build. */
function licences(modules) {
  const folders = new Set(
    modules.flatMap((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id.replaceAll(sep, '/')) ?? []),
  )
  const texts = [...folders].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    const texts = licenceTexts(folder)
    if (texts.length === 0) throw new Error(`the package has no text of its licence [package=${name}]`)
    return [`${name} ${version.replace(/^v/, '')}: ${license}`, ...texts].join('\n\n')
  })
  return `dist/packed/ and dist/console/ contain parts of the following packages.\n\n${texts.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`
}

/** Licence files of a package, or the sections of its README about licences. */
function licenceTexts(folder) {
  const textOf = (file) => readFileSync(join(folder, file), 'utf8')
  const files = readdirSync(folder)
  const texts = files.filter((file) => /^(licen[cs]e|notice|copying)/i.test(file)).map((file) => textOf(file).trim())
  if (texts.length > 0) return texts
  const sections = files.filter((file) => /^readme/i.test(file)).flatMap((file) => textOf(file).split(/^(?=#{1,6} )/m))
  return sections
    .filter((section) => /^#+ .*licen[cs]/i.test(section))
    .map((section) => section.replace(/^\[!\[.*$/gm, '').trim())
}

/** Writes the type declarations of the package's entry and of the modules that they import. */
function writeDeclarations() {
  const names = ['index']
  for (const name of names) {
    const path = `deploy/embedded/${name}.ts`
    const { code, errors } = isolatedDeclarationSync(path, readFileSync(join(home, path), 'utf8'))
    if (errors.length > 0) throw new Error(`${path}: ${errors.map(({ message }) => message).join(', ')}`)
    for (const [, named] of code.matchAll(/from ['"]\.\/([\w-]+)\.js['"]/g))
      if (!names.includes(named)) names.push(named)
    write(path.replace(/\.ts$/, '.d.ts'), code)
  }
}

/** Compiles every module that is not a program. */
function compileModules(files) {
  for (const path of files) {
    const module = path.replace(/\.ts$/, '')
    if (programs.includes(module)) continue
    const { code, errors } = transformSync(path, readFileSync(join(home, path), 'utf8'), transform)
    if (errors.length > 0) throw Object.assign(new Error(path), { errors })
    write(`${module}.js`, code)
  }
}

/** Keeps hidden files and folders, which are state of tools. */
function removeStale(folder = '') {
  for (const entry of readdirSync(join(dist, folder), { withFileTypes: true })) {
    const path = posix.join(folder, entry.name)
    if (entry.name.startsWith('.')) continue
    if (entry.isDirectory()) removeStale(path)
    else if (!written.has(path)) rmSync(join(dist, path))
  }
  if (folder !== '' && readdirSync(join(dist, folder)).length === 0) rmdirSync(join(dist, folder))
}
