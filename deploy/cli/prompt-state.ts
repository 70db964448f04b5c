// Types of the prompt of `penstock sql`: its state, such as the output format, and the functions that its commands
// call.

import type { Client } from './http-client.js'
import type { Format, Origin, SqlFlags } from './sql-result.js'

export interface PromptState {
  format: Format
  /** Whether a table has a line for each value: always, never, or when it is wider than the terminal. */
  expanded: 'on' | 'off' | 'auto'
  timing: boolean
  pager: boolean
  /** Results go to this file; null: to the terminal. */
  outputFile: string | null
  /** The last statement that ran. */
  last: string
}

export interface Terminal {
  readonly input: NodeJS.ReadableStream
  readonly output: NodeJS.WritableStream & {
    readonly columns?: number
    readonly rows?: number
    readonly isTTY?: boolean
  }
  /** Null: no history is kept. */
  readonly historyFile: string | null
}

export interface PromptControls {
  readonly client: Client
  readonly flags: SqlFlags
  readonly state: PromptState
  readonly terminal: Terminal
  write(text: string): void
  /** Ends the prompt. */
  leave(): void
  /** Takes the unfinished statement. */
  takeWaiting(): string
  /** Runs the complete statements of a text, until one fails; the rest waits for its end. */
  runText(text: string, origin?: Origin): Promise<boolean>
  /** Shows the result, or the error; returns whether it succeeded. */
  runStatement(sql: string): Promise<boolean>
  /** Does something that Ctrl-C ends. An error is printed. */
  guarded(work: (signal: AbortSignal) => Promise<void>, sql?: string, origin?: Origin | null): Promise<boolean>
  /** Gives the terminal to another program while the work lasts. */
  aside(work: () => Promise<void>): Promise<void>
}
