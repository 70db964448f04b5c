// How often a property is tried: `npm test` takes a share of the runs and seeds, TEST_RUNS=all, which .ci/run sets, all.

const allRuns = process.env['TEST_RUNS'] === 'all'

/** `share` of `all`. */
export function runs(all: number, share: number): number {
  return allRuns ? all : share
}
