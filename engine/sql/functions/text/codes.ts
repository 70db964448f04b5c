// SQL functions: hashes (md5, sha256, ..), base64, quoted identifiers, and code points.

import { createHash } from 'node:crypto'
import { dataType } from '../../../types/column-types.js'
import type { Value } from '../../../types/value.js'
import type { ScalarFunction } from '../function-types.js'

const text = (value: Value | undefined): string => String(value)
const int = (value: Value | undefined): number => Number(value)

function row(
  name: string,
  takes: ScalarFunction['takes'],
  gives: ScalarFunction['gives'],
  description: string,
  example: ScalarFunction['example'],
  apply: ScalarFunction['eval'],
): ScalarFunction {
  return { name, takes, gives, description, example, eval: apply }
}

function hashRow(name: 'md5' | 'sha1' | 'sha256', example: readonly [string, string]): ScalarFunction[] {
  const digest = (value: Value | undefined): string =>
    createHash(name)
      .update(value instanceof Uint8Array ? value : text(value))
      .digest('hex')
  return [
    row(name, ['TEXT'], 'VARCHAR', 'Hash as hexadecimal digits.', example, ([a]) => digest(a)),
    row(name, ['BINARY'], 'VARCHAR', 'Hash as hexadecimal digits.', null, ([a]) => digest(a)),
  ]
}

export const codeFunctions: readonly ScalarFunction[] = [
  ...hashRow('md5', ["md5('a')", '0cc175b9c0f1b6a831c399e269772661']),
  ...hashRow('sha1', ["sha1('a')", '86f7e437faa5a7fce15d1ddcb9eaeaea377667b8']),
  ...hashRow('sha256', ["sha256('a')", 'ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb']),
  row(
    'base64',
    ['BINARY', 'INT'],
    'STRING',
    'Base64 encoding of the first bytes, at most the given number.',
    null,
    ([a, n]) =>
      Buffer.from(a as Uint8Array)
        .subarray(0, Math.max(0, int(n)))
        .toString('base64'),
  ),
  row(
    'from_base64',
    ['TEXT'],
    'BINARY',
    'Decodes base64.',
    null,
    ([a]) => new Uint8Array(Buffer.from(text(a), 'base64')),
  ),
  row(
    'quote_ident',
    ['TEXT'],
    (args) => dataType(args[0]?.type.name === 'VARCHAR' ? 'VARCHAR' : 'STRING'),
    'The name, in double quotes if SQL requires them.',
    ["quote_ident('a b')", '"a b"'],
    ([a]) => (/^([\p{L}_][\p{L}\p{N}_$]*)?$/u.test(text(a)) ? text(a) : `"${text(a).replaceAll('"', '""')}"`),
  ),
  row('chr', ['INT'], 'STRING', 'The character of a code point.', ['chr(97)', 'a'], ([a]) =>
    int(a) > 0 && int(a) <= 0x10ffff ? String.fromCodePoint(int(a)) : null,
  ),
]
