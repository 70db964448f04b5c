// Decides how many cases a property test runs: all with TEST_RUNS=all, as in .ci/run, otherwise a fraction of its
// random cases and seeds.

const allRuns = process.env['TEST_RUNS'] === 'all'

/** `share` of `all`. */
export function runs(all: number, share: number): number {
  return allRuns ? all : share
}
