// Whether the writer syncs its log itself instead of asking the log thread: where one client waits for each of its commits,
// two hand-overs between threads take longer than the rest of the writer's work. While something else waits for the writer
// it decodes that during the sync, so the log thread is asked; and once news has come during a sync of its own, the writer
// asks the log thread for a while, longer each time.
//
// Invariant: syncs happen in the order of the log. As long as the log thread has not reported all that it was asked for, it
// is asked for the next one, too.

/** Syncs that the log thread does behind one during which news came: at first, and at most. */
const waitMin = 8
const waitMax = 1024

export class QuickSync {
  /** Sequences of syncs: what the log thread was asked for, and what it has reported. */
  #asked = 0
  #reported = 0
  #wait = 0
  #left = 0

  /** Whether the sync that is due happens at once; `quiet`: nothing waits for the writer. */
  isQuick(sequence: number, quiet: boolean): boolean {
    if (this.#left > 0) this.#left--
    else if (quiet && this.#reported === this.#asked) return true
    this.#asked = sequence
    return false
  }

  /** Of the log thread: a later sync reports earlier ones, too. */
  reported(sequence: number): void {
    this.#reported = sequence
  }

  /** A sync of the writer's own has ended. */
  done(newsCame: boolean): void {
    this.#wait = newsCame ? Math.min(waitMax, Math.max(waitMin, this.#wait * 2)) : this.#wait >> 1
    this.#left = newsCame ? this.#wait : 0
  }
}
