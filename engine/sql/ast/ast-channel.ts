// Statements about notifications between sessions. To be imported from ast.ts.

/** LISTEN, UNLISTEN, NOTIFY. */
export interface ChannelStatement {
  readonly kind: 'channel'
  readonly position: number
  readonly action: 'listen' | 'unlisten' | 'notify'
  /** Null: all of them. */
  readonly channel: string | null
  readonly payload: string
}
