// The last step of a build: each program (the command line tool, each thread) becomes one file and a few that they
// share, since a thread that opens 270 modules one by one needs twice the time and 20 MB more. The adapter of rolldown.
//
//   dist/deploy/cli.js                  the packed program, in the place of the compiled module
//   dist/deploy/cli.module.js           the compiled module, from which it is packed
//   dist/packed/<name>-<hash>.js        what programs share or load late
//
// `import.meta.url` stays what it was in the compiled module: files are found, and threads started, as without packing.

import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, posix, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type OutputChunk, rolldown } from 'rolldown'

const programs: readonly string[] = [
  ...['deploy/cli', 'deploy/warm-up-client'],
  ...['engine/threads/query-thread', 'engine/threads/writer-thread', 'engine/threads/log-thread'],
  ...['gateways/min-http/worker', 'connectors/kafka/worker', 'connectors/sqlite/dump-worker'],
]

const dist = dirname(dirname(fileURLToPath(import.meta.url)))
const banner = '// Packed by deploy/pack.ts.'

/** The compiler writes only what changed: what lies in a program's place is a new module, or packed already. */
function keepModule(program: string): string {
  const [place, kept] = [join(dist, `${program}.js`), join(dist, `${program}.module.js`)]
  if (!readFileSync(place, 'utf8').includes(banner)) copyFileSync(place, kept)
  return kept
}

const placeMark = 'penstock-module:'

/** Names the module that a code came from; where its packed file lies is known only later. */
function markPlace(code: string, id: string): string | null {
  if (!code.includes('import.meta.url')) return null
  const module = relative(dist, id).replaceAll(sep, '/').replace('.module.js', '.js')
  return code.replaceAll('import.meta.url', `new URL('${placeMark}${module}', import.meta.url).href`)
}

function setPlaces({ code, fileName }: OutputChunk): string {
  return code.replace(/penstock-module:([\w./-]+)/g, (_, module: string) => {
    const path = posix.relative(posix.dirname(fileName), module)
    return path.startsWith('.') ? path : `./${path}`
  })
}

/** One character beyond Latin-1 makes V8 keep and scan a whole file as two bytes a character, in each thread. */
function escapeCharacters(code: string): string {
  return code.replace(/\P{ASCII}/gu, escaped)
}

/** In code units, so that it says the same within strings, templates and regular expressions. */
function escaped(character: string): string {
  return Array.from({ length: character.length }, (_, index) => {
    return `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`
  }).join('')
}

rmSync(join(dist, 'packed'), { recursive: true, force: true })
const bundle = await rolldown({
  input: Object.fromEntries(programs.map((program) => [program, keepModule(program)])),
  platform: 'node',
  external: (id) => !/^[./]/.test(id) && !/^[A-Z]:/i.test(id),
  plugins: [{ name: 'places', transform: markPlace }],
})
const { output } = await bundle.generate({
  format: 'esm',
  entryFileNames: '[name].js',
  chunkFileNames: 'packed/[name]-[hash].js',
  banner,
})
mkdirSync(join(dist, 'packed'))
for (const file of output) {
  if (file.type === 'chunk') writeFileSync(join(dist, file.fileName), escapeCharacters(setPlaces(file)))
}
await bundle.close()
