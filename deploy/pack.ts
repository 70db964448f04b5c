// The last step of a build: each program (the command line tool, each thread) becomes one file and a few that they
// share, since a thread that opens 270 modules one by one needs twice the time and 20 MB more. The adapter of rolldown.
//
//   dist/deploy/cli.js                  the packed program, in the place of the compiled module
//   dist/deploy/cli.module.js           the compiled module, from which it is packed
//   dist/packed/<name>-<hash>.js        what programs share or load late
//
// `import.meta.url` stays what it was in the compiled module: files are found, and threads started, as without packing.

import { copyFileSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join, posix, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type OutputChunk, rolldown } from 'rolldown'

const programs: readonly string[] = [
  'deploy/cli',
  ...['engine/threads/query-thread', 'engine/threads/writer-thread', 'engine/threads/log-thread'],
  ...['gateways/min-http/worker', 'connectors/kafka/worker', 'connectors/sqlite/dump-worker'],
  'pipeline/parquet-worker',
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

function setPlaces(code: string, { fileName }: Pick<OutputChunk, 'fileName'>): string | null {
  if (!code.includes(placeMark)) return null
  return code.replace(/penstock-module:([\w./-]+)/g, (_, module: string) => {
    const path = posix.relative(posix.dirname(fileName), module)
    return path.startsWith('.') ? path : `./${path}`
  })
}

rmSync(join(dist, 'packed'), { recursive: true, force: true })
const bundle = await rolldown({
  input: Object.fromEntries(programs.map((program) => [program, keepModule(program)])),
  platform: 'node',
  external: (id) => !/^[./]/.test(id) && !/^[A-Z]:/i.test(id),
  plugins: [{ name: 'places', transform: markPlace, renderChunk: setPlaces }],
})
await bundle.write({
  dir: dist,
  format: 'esm',
  entryFileNames: '[name].js',
  chunkFileNames: 'packed/[name]-[hash].js',
  banner,
})
await bundle.close()
