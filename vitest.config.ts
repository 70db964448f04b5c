// Test runner settings. Tests mirror the tree under test/.
//
// Where dist/ is what the sources say (`npm test` builds first), tests take all but themselves from there: modules that
// Node loads itself come in a tenth of the time and run a seventh quicker than those that the test runner rewrites.
// After a change of a source, until the next build, the sources are used.
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
const long = ['test/crash/sim.test.ts', 'test/sql/slt.test.ts', 'test/bench.test.ts']

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
const alone = [...long, 'test/engine/sql/exec/share.test.ts', 'test/engine/threads/heap-guard.test.ts']

/** Until the next build modules of the test runner are used, which each file loads anew. */
const isBuilt = buildIsCurrent('modules')
const built = { extends: true as const, plugins: isBuilt ? [fromBuild] : [] }

// The other files share two processes: the modules of the build are loaded, and compiled, once for all of them.
export default defineConfig({
  test: {
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: 'forks',
    maxWorkers: 2,
    server: { deps: { external: [/\/dist\//] } },
    sequence: { sequencer: LongFirst },
    projects: [
      {
        ...built,
        test: {
          name: 'built',
          include: ['test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...alone, ...mocking],
          isolate: !isBuilt,
        },
      },
      { ...built, test: { name: 'alone', include: alone } },
      { extends: true, test: { name: 'sources', include: mocking } },
    ],
  },
})
