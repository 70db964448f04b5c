// Test runner settings. Tests mirror the tree under test/.
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

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

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: 'forks',
    maxWorkers: 2,
    sequence: { sequencer: LongFirst },
  },
})
