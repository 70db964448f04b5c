// Syntax tree of LISTEN, UNLISTEN and NOTIFY. Import these types from ast.ts.

/** A LISTEN, UNLISTEN or NOTIFY statement. */
export interface ChannelStatement {
  readonly kind: 'channel'
  readonly position: number
  readonly action: 'listen' | 'unlisten' | 'notify'
  /** Null: all channels (`unlisten *`). */
  readonly channel: string | null
  readonly payload: string
}
