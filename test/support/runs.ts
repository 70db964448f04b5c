// How many cases a property test runs: `npm test` runs a fraction of the cases and seeds, TEST_RUNS=all, as in .ci/run,
// all.

const allRuns = process.env['TEST_RUNS'] === 'all'

/** `share` of `all`. */
export function runs(all: number, share: number): number {
  return allRuns ? all : share
}
