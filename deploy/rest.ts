// What the main thread does while nobody asks.

/** Share of its time that the main thread works while it rests. */
const restUtilization = 0.1

export interface Rest {
  /** No more looks. */
  end(): void
}

/** Looks every so often, and acts when there was hardly any work since the last look. */
export function atRest(lookMs: number, act: (rest: Rest) => void): Rest {
  let before = performance.eventLoopUtilization()
  const looking = setInterval(() => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, before)
    before = now
    if (utilization <= restUtilization) act(rest)
  }, lookMs).unref()
  const rest = { end: () => clearInterval(looking) }
  return rest
}
