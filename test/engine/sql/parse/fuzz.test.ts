// Goal: for any text the parser returns a tree, or throws a SqlError with a position inside the text, in linear time
// and with bounded stack. Method: random tokens, randomly changed statements, and deep or long constructions.

import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { SqlError } from '../../../../engine/base/errors.js'
import {
  sqlChainMax,
  sqlColumnsMax,
  sqlDepthMax,
  sqlJoinsMax,
  sqlSetOperationsMax,
  sqlTermsMax,
} from '../../../../engine/base/limits.js'
import { parseScript, parseStatement } from '../../../../engine/sql/parse/parse.js'
import { createRandom, type Random } from '../../../support/random.js'
import { runs } from '../../../support/runs.js'

const words =
  `select from where group by order having limit union all except intersect join left right full cross asof lt splice window on as
  and or not in between like is null true false case when then else end cast over partition rows range preceding following current row
  unbounded sample fill prev align to calendar time zone offset latest with declare insert into values update set delete create table
  view alter add column drop truncate rename show explain copy begin commit fetch cursor for timestamp index symbol capacity ttl wal
  dedup upsert keys exists any array extract substring pivot a b ts "q" 'text' E'\\n' 1 2.5 1h 0xff 10L #u33 ##01 $1 :p ? @x := :: = <> < >
  + - * / % || | & ^ ~ !~ << >> ( ) ( ) [ ] , , . ; : { } \\ " ' -- /* */`.split(/\s+/)

function check(text: string): void {
  for (const parse of [parseStatement, parseScript]) {
    try {
      parse(text)
    } catch (error) {
      if (!(error instanceof SqlError))
        throw new Error(`not a SqlError for ${JSON.stringify(text.slice(0, 500))}`, { cause: error })
      if (error.position < 0 || error.position > text.length)
        throw new Error(`position ${error.position} is outside of ${JSON.stringify(text)}`)
    }
  }
}

function soup(random: Random): string {
  return Array.from({ length: random.between(1, 40) }, () => random.pick(words)).join(random.chance(0.9) ? ' ' : '')
}

function mutilate(random: Random, text: string): string {
  const at = random.below(text.length + 1)
  const to = Math.min(text.length, at + random.below(12))
  return text.slice(0, at) + (random.chance(0.5) ? random.pick(words) : '') + text.slice(to)
}

describe('any text', () => {
  const seed = 7
  it(`is parsed or refused: token soup (seed ${seed})`, () => {
    const random = createRandom(seed)
    for (let i = 0; i < runs(30_000, 4000); i++) check(soup(random))
  })

  it(`is parsed or refused: mutilated statements (seed ${seed})`, () => {
    const random = createRandom(seed)
    const lines = readFileSync(new URL('fixtures/statements.jsonl', import.meta.url), 'utf8')
      .trimEnd()
      .split('\n')
    for (const line of lines) for (let i = 0; i < runs(10, 1); i++) check(mutilate(random, JSON.parse(line) as string))
  })

  it.each([
    '(',
    'select (',
    'select f(',
    'select -',
    'select not ',
    'select case when ',
    'select array[',
    'select array[[',
    'select a in (',
    'select exists(',
    'with a as (',
    'select * from (',
    'select 1 union (',
    'explain ',
    'prepare a as ',
    'select cast(',
    'select substring(',
    'select a[',
    'insert into t values ((',
    'select 1+',
    'select a::',
    'select a.',
    'select (a).b',
    'declare @x := (',
    'select a not ',
  ])('nests at most so deep: %s', (part) => {
    const [head = '', repeated = part] = part.startsWith('select ') ? ['select ', part.slice(7)] : ['', part]
    check(head + repeated.repeat(50_000))
    check(part.repeat(50_000))
  })

  it('names the limits', () => {
    expect(() => parseStatement(`select ${'('.repeat(sqlDepthMax)}1${')'.repeat(sqlDepthMax)}`)).toThrow(
      'nested too deeply',
    )
    expect(() => parseStatement(`select 1${' + 1'.repeat(sqlChainMax + 1)}`)).toThrow('expression is too long')
    const terms = sqlTermsMax + 2
    expect(() => parseStatement(`select true${' or true'.repeat(terms)}`)).toThrow('too many conditions')
    expect(() => parseStatement(`select case${' when a then 1'.repeat(terms)} end`)).toThrow('too many conditions')
    expect(() => parseStatement(`select 1${' union select 1'.repeat(sqlSetOperationsMax + 1)}`)).toThrow(
      'too many set operations',
    )
    const columns = (count: number) => Array.from({ length: count }, () => '1').join()
    expect(() => parseStatement(`select ${columns(sqlColumnsMax + 1)}`)).toThrow('list is too long')
    expect(() => parseStatement(`select 1 group by ${columns(sqlColumnsMax + 1)}`)).toThrow('list is too long')
    parseStatement(`select ${columns(sqlColumnsMax)}`)
    parseStatement(`select ${'('.repeat(sqlDepthMax - 5)}1${')'.repeat(sqlDepthMax - 5)}`)
    parseStatement(`select f(${Array.from({ length: sqlColumnsMax }, () => '1 + 2').join()})`)
  })
})

describe('time', () => {
  it.each([
    ['an IN list', (n: number) => `select * from t where a in (${Array.from({ length: n }, (_, i) => i).join()})`],
    [
      'rows',
      (n: number) => `insert into t values ${Array.from({ length: n }, (_, i) => `(${i}, 'x${i}', ${i}.5)`).join()}`,
    ],
    ['joins', (n: number) => `select * from t${' join u on (a)'.repeat(sqlJoinsMax)};`.repeat(n / sqlJoinsMax)],
    [
      'OR chains',
      (n: number) =>
        `select * from t where ${Array.from({ length: 2000 }, (_, i) => `a = ${i}`).join(' or ')};`.repeat(n / 2000),
    ],
    [
      'columns',
      (n: number) =>
        `create table t (${Array.from({ length: 2500 }, (_, i) => `a${i} symbol capacity 16 index`).join()});`.repeat(
          n / 2500,
        ),
    ],
    ['comments', (n: number) => `select 1 ${'/* x */ -- y\n'.repeat(n)}`],
    ['statements', (n: number) => 'select 1;'.repeat(n)],
  ])('grows linearly with %s', (_, make) => {
    const [shorter, longer] = [make(10_000), make(40_000)]
    let [small, large] = [fastest(shorter), fastest(longer)]
    // For four times the text, quadratic cost would be sixteen times as high. The slack allows for garbage collection
    // and timer resolution.
    const isLinear = (): boolean => large < small * 9 + 30
    // On a busy machine some runs are slow, so only a parser that is never fast enough fails.
    for (let again = 0; again < 5 && !isLinear(); again++) {
      small = Math.max(small, fastest(shorter))
      large = Math.min(large, fastest(longer))
    }
    expect(isLinear(), `${small} ms and ${large} ms`).toBe(true)
  })
})

/** CPU time in milliseconds, which other processes do not affect. */
function fastest(text: string): number {
  let best = Number.POSITIVE_INFINITY
  for (let i = 0; i < 3; i++) {
    const start = process.cpuUsage()
    parseScript(text)
    best = Math.min(best, process.cpuUsage(start).user / 1000)
  }
  return best
}
