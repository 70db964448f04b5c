// Reserved words: table names, new column names and aliases may not be one of them unless quoted.

import { SqlError } from '../../base/errors.js'
import type { Cursor } from './cursor.js'

const reservedWords: ReadonlySet<string> = new Set(
  `add all alter and as asc attach between bypass case cast column create desc detach disable distinct drop enable end except
  exists explain false from in insert intersect into join limit lock nan not null on or order outer over partition rename resume
  sample select set squash table to union update upsert values where with within`.split(/\s+/),
)

export function keywordError(word: string, position: number): SqlError {
  const rule = 'table and column names that are SQL keywords have to be enclosed in double quotes'
  return new SqlError(`${rule}, such as "${word}"`, position)
}

export function isReserved(word: string): boolean {
  return reservedWords.has(word)
}

export function refuseReserved({ word, start, kind }: Cursor): void {
  if (kind === 'word' && reservedWords.has(word)) throw keywordError(word, start)
}
