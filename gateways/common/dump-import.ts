// What the HTTP gateway wants of whoever reads dumps of other databases: one import is a sink of bytes with a result.

import type { Session } from '../../engine/engine.js'
import type { DataType } from '../../engine/types/column-types.js'

export interface DumpRequest {
  readonly session: Session
  readonly connectionId: number
  /** Tables that are there are replaced; else rows are added to them. */
  readonly overwrite: boolean
  /** Empty = all. */
  readonly tables: readonly string[]
  /** `column` or `table.column`; `none`; empty = to be found. */
  readonly timestamps: readonly string[]
  readonly partitionBy: string
  /** Of times that are numbers; null = told by their size. */
  readonly unit: DumpTimeUnit | null
  /** By `column` or `table.column` in lower case. */
  readonly types: readonly { readonly column: string; readonly type: DataType }[]
  /** Rows that cannot be taken are left out and reported; else the first one ends the import. */
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
  /** What was not taken: the first ones. */
  readonly reports: readonly { readonly line: number; readonly table: string; readonly reason: string }[]
  readonly reportCount: number
}

export interface DumpSession {
  write(chunk: Buffer): Promise<void>
  end(): Promise<DumpResult>
  /** Gives everything back; call once, at the end, whatever it was. */
  close(): Promise<void>
}

export type OpenDump = (request: DumpRequest) => DumpSession
