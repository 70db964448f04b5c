// Inline fsync: decides whether the writer syncs its log itself instead of asking the log thread. If a single client
// waits for each of its commits, two hand-overs between threads take longer than the rest of the writer's work. If
// other requests are waiting, the log thread does the sync, and the writer decodes them meanwhile. If a message arrives
// during an inline sync, the log thread does the next 8 syncs, and each further time twice as many, up to 1,024. Each
// inline sync without a message halves this number.
//
// Invariant: syncs happen in log order. While the log thread has unfinished requests, it also gets the next one.

/** Number of syncs by the log thread after an inline sync during which a message arrived: initially, and at most. */
const waitMin = 8
const waitMax = 1024

export class InlineSync {
  /** Sequences of syncs: the last one requested from the log thread, and the last one it reported. */
  #requested = 0
  #reported = 0
  #wait = 0
  #left = 0

  /** Whether to sync inline. `quiet`: no message or line is waiting for the writer. */
  isInline(sequence: number, quiet: boolean): boolean {
    if (this.#left > 0) this.#left--
    else if (quiet && this.#reported === this.#requested) return true
    this.#requested = sequence
    return false
  }

  /** Takes a report of the log thread, which also covers earlier syncs. */
  reported(sequence: number): void {
    this.#reported = sequence
  }

  /** Records the end of an inline sync, and whether a message arrived during it. */
  done(newsCame: boolean): void {
    this.#wait = newsCame ? Math.min(waitMax, Math.max(waitMin, this.#wait * 2)) : this.#wait >> 1
    this.#left = newsCame ? this.#wait : 0
  }
}
