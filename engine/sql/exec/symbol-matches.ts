// Symbols equal to given texts: their dictionary is looked through as bytes, without making a text of every entry.

import type { SharedMemory } from '../../memory/shared-memory.js'
import { dictionaryEntry } from '../../storage/layout.js'
import type { Expression } from '../plan/plan.js'

/** More texts than these are not compared one by one. */
const wantedMax = 64
const texts: ReadonlySet<string> = new Set(['STRING', 'VARCHAR', 'SYMBOL'])

/** The texts of `column = 'text'` and `column in ('text', …)`; undefined for anything else. */
export function wantedTexts(expression: Expression): readonly Buffer[] | undefined {
  if (expression.kind !== 'call') return undefined
  const { name, args } = expression
  const constants = args.filter(({ kind }) => kind === 'constant')
  if (constants.length !== args.length - 1 || constants.length > wantedMax) return undefined
  if (name === 'in' ? args[0]?.kind !== 'column' : name !== '=' || args.length !== 2) return undefined
  const found: Buffer[] = []
  for (const part of constants) {
    if (part.kind !== 'constant' || typeof part.value !== 'string' || !texts.has(part.type.name)) return undefined
    found.push(Buffer.from(part.value, 'utf8'))
  }
  return args.some(({ kind, type }) => kind === 'column' && type.name === 'SYMBOL') ? found : undefined
}

/** Writes 1 or 0 for each of the dictionary's entries [from, count) to a table of answers by id. */
export function matchEntries(
  memory: SharedMemory,
  dictionary: number,
  from: number,
  count: number,
  wanted: readonly Buffer[],
  table: number,
): void {
  const { u8, u32 } = memory
  for (let id = from; id < count; id++) {
    const entry = dictionaryEntry(memory, dictionary, id) >>> 2
    u8[table + id] = isWanted(u8, u32[entry] as number, u32[entry + 1] as number, wanted) ? 1 : 0
  }
}

/** The number of the entry with that text; -1 when there is none among the first `count`. */
export function entryOf(memory: SharedMemory, dictionary: number, count: number, text: Buffer): number {
  const { u8, u32 } = memory
  for (let id = 0; id < count; id++) {
    const entry = dictionaryEntry(memory, dictionary, id) >>> 2
    if (u32[entry + 1] === text.length && sameBytes(u8, u32[entry] as number, text)) return id
  }
  return -1
}

function isWanted(u8: Uint8Array, address: number, bytes: number, wanted: readonly Buffer[]): boolean {
  for (let at = 0; at < wanted.length; at++) {
    const text = wanted[at] as Buffer
    if (text.length === bytes && sameBytes(u8, address, text)) return true
  }
  return false
}

function sameBytes(u8: Uint8Array, address: number, text: Buffer): boolean {
  // Names of a kind differ in their last bytes.
  for (let at = text.length - 1; at >= 0; at--) if (u8[address + at] !== text[at]) return false
  return true
}
