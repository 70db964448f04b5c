// Time as a dependency, so that tests and the simulator steer it.

export interface Clock {
  /** Wall clock in microseconds since the epoch (an integer in a double, exact until the year 2255). */
  nowMicros(): number
  /** Monotonic milliseconds, for durations and deadlines. */
  monotonicMs(): number
}

export const systemClock: Clock = {
  nowMicros: () => Math.round((performance.timeOrigin + performance.now()) * 1000),
  monotonicMs: () => performance.now(),
}
