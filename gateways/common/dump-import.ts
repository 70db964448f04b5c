// The interface between the HTTP gateway and a connector that imports dumps of other databases: options, sink,
// result.

import type { Session } from '../../engine/engine.js'
import type { DataType } from '../../engine/types/column-types.js'

export interface DumpRequest {
  readonly session: Session
  readonly connectionId: number
  /** Replace existing tables instead of appending to them. */
  readonly overwrite: boolean
  /** Empty: all tables. */
  readonly tables: readonly string[]
  /** `column` or `table.column`; `none`; empty: detect. */
  readonly timestamps: readonly string[]
  readonly partitionBy: string
  /** Unit of numeric timestamps; null: detect from their magnitude. */
  readonly unit: DumpTimeUnit | null
  /** Columns as `column` or `table.column` in lower case. */
  readonly types: readonly { readonly column: string; readonly type: DataType }[]
  /** Skip and report rows that cannot be stored; otherwise the first one ends the import. */
  readonly skipRows: boolean
}

export const dumpTimeUnits = ['s', 'ms', 'us', 'ns', 'julian'] as const
export type DumpTimeUnit = (typeof dumpTimeUnits)[number]

export interface DumpResult {
  readonly tables: readonly {
    readonly source: string
    readonly name: string
    readonly rowsImported: number
    readonly timestamp: string | null
    readonly partitionBy: string
    readonly columns: readonly { readonly name: string; readonly type: string }[]
  }[]
  readonly views: readonly string[]
  readonly rowsImported: number
  readonly rowsRejected: number
  /** The first problems found. */
  readonly reports: readonly { readonly line: number; readonly table: string; readonly reason: string }[]
  readonly reportCount: number
}

export interface DumpSession {
  write(chunk: Buffer): Promise<void>
  end(): Promise<DumpResult>
  /** Releases all resources; call once at the end, after success or failure. */
  close(): Promise<void>
}

export type OpenDump = (request: DumpRequest) => DumpSession
