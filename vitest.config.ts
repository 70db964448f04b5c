// Test runner settings. Tests mirror the tree under test/.
//
// If dist/ is up to date (`npm test` builds first), tests import the compiled modules from there, because modules that Node
// loads itself load and run faster than those that the test runner transforms. If a source has changed since the last
// build, tests import the sources.
import { existsSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { configDefaults, defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification, type Vite } from 'vitest/node'
import { isBuilt as buildIsCurrent, home } from './deploy/build-state.js'

const fromBuild: Vite.Plugin = {
  name: 'from-build',
  enforce: 'pre',
  resolveId(id, importer) {
    if (!id.startsWith('.') || !id.endsWith('.js') || importer === undefined) return
    const built = join(home, 'dist', relative(home, resolve(dirname(importer), id)))
    return existsSync(built) ? { id: built, external: true } : undefined
  },
}

/** They begin first: what takes minutes would otherwise run alone at the end. */
const long = ['test/crash/sim.test.ts', 'test/sql/slt.test.ts']

/** The benches with tiny input: `npm run test:bench`. */
const benches = 'test/bench.test.ts'

/**
 * What `npm run test:quick` leaves out: crashes, servers as processes of their own, and what takes more than 3 s of a
 * processor.
 */
const slow = [
  ...['crash', 'integration', 'gateways/pgwire', 'sql/long-statements', 'sql/duckdb', 'deploy/process'],
  ...[
    'deploy/build',
    'pipeline/read-parquet',
    'pipeline/copy-files',
    'engine/storage/writer-crash',
    'engine/wal/crash',
    'engine/kernels/join',
    'engine/kernels/jit/fragments',
    'engine/pg/literal-rows',
  ],
  ...['docs/examples', 'docs/tasks', 'docs/errors', 'deploy/embedded', 'deploy/cli-machine', 'deploy/lake-example'],
  ...['gateways/http/access', 'gateways/http/connections', 'engine/wal/guards'],
  ...['changes-in-with', 'upserts'].map((name) => `engine/session/${name}`),
  ...['scan/latest-symbols', 'scan/first-last-rows', 'spill/spill', 'spill/spill-order', 'spill/spill-ends'].map(
    (name) => `engine/exec/${name}`,
  ),
  ...['manifest/source-positions', 'part/remote-part', 'enforced-keys'].map((name) => `engine/storage/${name}`),
  ...['engine/views/grouped-views', 'engine/exec/constants-columns', 'engine/sql/functions/rounding'],
  ...[
    'coordinator',
    'asof-late',
    'clock-buckets',
    'differential',
    'distinct-symbols',
    'end-rows',
    'export-pages',
    'join',
  ].map((name) => `engine/**/${name}`),
  ...[
    'fuzz',
    'paths',
    'sort-ties',
    'sparse',
    'tools',
    'window',
    'memory-queue',
    'insert-select',
    'ordered',
    'short-buckets',
    'sort-runs',
    'stopped-reader',
    'wide-tables',
  ].map((name) => `engine/**/${name}`),
  ...[
    'check',
    'create-as',
    'dedup',
    'dictionary',
    'flush',
    'manifest',
    'part',
    'evicted-symbols',
    'rewrite',
    'writer',
  ].map((name) => `engine/**/${name}`),
].flatMap((name) => [`test/${name}.test.ts`, `test/${name}/**`])

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const place = long.findIndex((path) => moduleId.endsWith(path))
      return place < 0 ? long.length : place
    }
    return (await super.sort(files)).sort((x, y) => rank(x) - rank(y))
  }
}

/** They break modules of the engine on purpose, which only the test runner's own modules allow. */
const mocking = ['test/engine/wal/guards.test.ts', 'test/crash/sim-guards.test.ts']

/** A process each: they measure, fill the heap, or change what holds for the whole process. */
const alone = [...long, 'test/engine/exec/parallel/coordinator.test.ts', 'test/engine/threads/heap-guard.test.ts']

/** Until the next build modules of the test runner are used, which each file loads anew. */
const isBuilt = buildIsCurrent('modules')
const built = { extends: true as const, plugins: isBuilt ? [fromBuild] : [] }

const shared = {
  // No test asks how long something takes: these end what hangs, on a machine however busy.
  testTimeout: 900_000,
  hookTimeout: 900_000,
  expect: { poll: { timeout: 600_000 } },
  pool: 'forks' as const,
  maxWorkers: 2,
  server: { deps: { external: [/\/dist\//] } },
  sequence: { sequencer: LongFirst },
  // `TEST_CPU=file`: a line with the CPU seconds of each test file.
  setupFiles: process.env['TEST_CPU'] ? ['test/support/cpu-times.ts'] : [],
}

// `vitest --mode quick` and `--mode bench` run other selections. Most files share two processes: the modules of the
// build are loaded, and compiled, once for all of them.
export default defineConfig(({ mode }) => {
  if (mode === 'bench') return { ...built, test: { ...shared, include: [benches] } }
  const quick = mode === 'quick'
  const left = [...configDefaults.exclude, benches, ...(quick ? slow : [])]
  const env = quick ? { SLT_MODES: 'memory' } : {}
  const project = (name: string, include: readonly string[], exclude: readonly string[]) => ({
    test: { name, include: [...include], exclude: [...left, ...exclude], env },
  })
  const common = project('built', ['test/**/*.test.ts'], [...alone, ...mocking])
  return {
    test: {
      ...shared,
      projects: [
        { ...built, test: { ...common.test, isolate: !isBuilt } },
        { ...built, ...project('alone', alone, []) },
        { extends: true, ...project('sources', mocking, []) },
      ],
    },
  }
})
