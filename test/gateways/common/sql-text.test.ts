// Goal: the splitter of SQL text, whose tokens the console and the prompt use, accepts any text, and finds the
// statement at the cursor of the console's editor; the formatter of the console does not change the meaning of a
// statement. Method: examples, and random texts.

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  isQuery,
  literal,
  mentionsSecret,
  quoted,
  statementAt,
  statementsOf,
  tokensOf,
} from '../../../gateways/common/sql-text.js'
import { formatSql } from '../../../gateways/console/app/format-sql.js'

const texts = (sql: string): string[] => statementsOf(sql).map(({ text }) => text)

/** Pieces of SQL, in any order. */
const sqlText = fc
  .array(
    fc.constantFrom(
      ...[
        'select',
        'SELECT',
        'from',
        'where',
        'a',
        'b.c',
        '"x y"',
        "'it''s; here'",
        '-- note;\n',
        '/* a; b */',
        '$$ ; $$',
      ],
      ...[
        '(',
        ')',
        ',',
        ';',
        '=',
        '<=',
        '::',
        'int',
        '1.5e3',
        '-1',
        '*',
        'group by',
        'order by',
        'sample by 1h',
        'and',
        'or',
      ],
      ...[
        'between',
        'in',
        'fill(null)',
        'count()',
        'timestamp(ts)',
        'left join',
        'on',
        '[1]',
        '\n',
        'with',
        'as',
        "'open",
      ],
    ),
    { maxLength: 30 },
  )
  .map((pieces) => pieces.join(' '))

describe('statements', () => {
  test('semicolons within strings, names and comments do not count', () => {
    const sql = 'select \';\', ";" -- ;\n, $$;$$ /* ; */ from a; select 2 ; ; -- end'
    expect(texts(sql)).toEqual(['select \';\', ";" -- ;\n, $$;$$ /* ; */ from a', 'select 2'])
  })

  test('each one has its place', () => {
    const sql = '-- first\nselect 1;\n  select 2  ;'
    expect(statementsOf(sql)).toEqual([
      { text: 'select 1', start: 9, end: 17 },
      { text: 'select 2', start: 21, end: 29 },
    ])
  })

  test.each([
    [0, 'select 1'],
    [8, 'select 1'],
    [9, 'select 1'],
    [10, 'select 2'],
    [14, 'select 2'],
    [20, 'select 2'],
    [21, 'select 3'],
    [40, 'select 3'],
  ])('the cursor at %i means %s', (offset, expected) => {
    expect(statementAt('select 1;\nselect 2; \n\nselect 3\n\n', offset)?.text).toBe(expected)
  })

  test('an empty text has none', () => {
    expect(statementAt(' -- nothing\n', 3)).toBeNull()
    expect(texts(';;')).toEqual([])
  })

  test('tokens cover any text', () => {
    fc.assert(
      fc.property(
        fc.string(),
        (text) =>
          tokensOf(text)
            .map((token) => token.text)
            .join('') === text,
      ),
    )
    fc.assert(
      fc.property(
        sqlText,
        (text) =>
          tokensOf(text)
            .map((token) => token.text)
            .join('') === text,
      ),
    )
  })

  test('which statements can be asked for in pages', () => {
    expect(['select 1', '-- a\nWITH x AS (select 1) select * from x', 'from t'].map(isQuery)).toEqual([
      true,
      true,
      true,
    ])
    expect(
      ['show tables', 'insert into t select 1', 'with x as (select 1) insert into t select * from x', ''].map(isQuery),
    ).toEqual([false, false, false, false])
  })

  test('names and literals', () => {
    expect([quoted('a_1'), quoted('a b'), quoted('a"b'), literal("it's")]).toEqual([
      'a_1',
      '"a b"',
      '"a""b"',
      "'it''s'",
    ])
    expect(mentionsSecret("create user a with password 'x'")).toBe(true)
  })
})

describe('the formatter', () => {
  test.each([
    ['select 1', 'SELECT 1'],
    [
      'select ts, avg(price) from trades where symbol in (1,2) sample by 1h fill(null)',
      'SELECT ts, avg(price)\nFROM trades\nWHERE symbol IN (1, 2)\nSAMPLE BY 1h\nFILL (NULL)',
    ],
    [
      'select * from (select a from b where c = 1) where a > -1 order by a desc limit 10',
      'SELECT *\nFROM (\n  SELECT a\n  FROM b\n  WHERE c = 1\n)\nWHERE a > -1\nORDER BY a DESC\nLIMIT 10',
    ],
    ['select a.ts from a asof join b on (a.x=b.x)', 'SELECT a.ts\nFROM a\nASOF JOIN b ON (a.x = b.x)'],
    ['fill(null) timestamp(ts) -- note\n1', 'FILL (NULL)\nTIMESTAMP\n  (ts) -- note\n  1'],
    ['fill(null)\ntimestamp\n(ts)', 'FILL (NULL)\nTIMESTAMP (ts)'],
    ["select 1; -- keep\nselect 'a  b'", "SELECT 1; -- keep\nSELECT 'a  b'"],
  ])('%s', (sql, expected) => {
    expect(formatSql(sql).replace('FILL(NULL)', 'FILL (NULL)')).toBe(expected)
  })

  test('long lists have a line for each item', () => {
    const sql = `select ${Array.from({ length: 12 }, (_, index) => `column_${index}`).join(', ')} from t`
    expect(formatSql(sql).split('\n')).toHaveLength(14)
  })

  /** Everything but white space and the case of words. */
  const meaning = (sql: string): string[] =>
    tokensOf(sql)
      .filter(({ kind }) => kind !== 'space')
      .map(({ kind, text }) => (kind === 'word' ? text.toLowerCase() : kind === 'comment' ? text.trimEnd() : text))

  test('changes white space and the case of keywords alone', () => {
    fc.assert(
      fc.property(sqlText, (sql) => {
        expect(meaning(formatSql(sql))).toEqual(meaning(sql))
      }),
    )
  })

  test('changes nothing the second time', () => {
    fc.assert(
      fc.property(sqlText, (sql) => {
        const once = formatSql(sql)
        expect(formatSql(once)).toBe(once)
      }),
    )
  })
})
