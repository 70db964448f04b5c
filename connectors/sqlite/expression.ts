// Evaluates the expressions by which `sqlite3 .dump` writes strings with line ends or control characters, and infinite
// numbers. Other expressions are not supported. An expression is a sequence of terms joined by `||`; a term is one of:
//
//   'text' | X'hex' | number | Inf | -Inf | NULL | TRUE | FALSE | ( expression ) | replace(e, e, e) | unistr(e) |
//   char(n, ..) | CAST(e AS type), to a string or a blob

import { nonNull } from '../../engine/base/assert.js'

export type Computed = string | number | bigint | Buffer | null

/** Undefined when the text is no such expression. */
export function evaluate(text: string): Computed | undefined {
  try {
    const reader = new Reader(text)
    const value = reader.sum()
    return reader.atEnd ? value : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

const token =
  /\s*(?:('(?:[^']|'')*')|[xX]'([0-9a-fA-F]*)'|([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|([A-Za-z_]\w*)|(\|\||[(),+-]))/y

class Reader {
  private readonly text: string
  private at = 0
  private depth = 0

  constructor(text: string) {
    this.text = text
  }

  get atEnd(): boolean {
    return this.text.slice(this.at).trim() === ''
  }

  sum(): Computed {
    if (++this.depth > 1000) throw new SyntaxError('nested too deeply')
    let value = this.term()
    while (this.take('||')) {
      const next = this.term()
      value = value === null || next === null ? null : textOf(value) + textOf(next)
    }
    this.depth--
    return value
  }

  private term(): Computed {
    const [, quoted, hex, number, word, mark] = this.next()
    if (quoted !== undefined) return quoted.slice(1, -1).replaceAll("''", "'")
    if (hex !== undefined) return Buffer.from(hex, 'hex')
    if (number !== undefined) return /^[+-]?\d+$/.test(number) ? BigInt(number.replace('+', '')) : Number(number)
    if (word !== undefined) return this.named(word.toLowerCase())
    if (mark === '-' || mark === '+') return signed(mark, this.term())
    if (mark !== '(') throw new SyntaxError('unexpected')
    const value = this.sum()
    this.expect(')')
    return value
  }

  private named(word: string): Computed {
    if (word === 'null') return null
    if (word === 'true') return 1n
    if (word === 'false') return 0n
    if (word === 'inf' || word === 'infinity') return Number.POSITIVE_INFINITY
    this.expect('(')
    if (word === 'cast') return this.cast()
    const values = [this.sum()]
    while (this.take(',')) values.push(this.sum())
    this.expect(')')
    return call(word, values)
  }

  private cast(): Computed {
    const value = this.sum()
    const [, , , , as] = this.next()
    const [, , , , type] = this.next()
    this.expect(')')
    if (as?.toLowerCase() !== 'as' || type === undefined) throw new SyntaxError('no cast')
    if (value === null) return null
    if (/^(text|varchar|char)$/i.test(type)) return textOf(value)
    if (/^blob$/i.test(type)) return Buffer.isBuffer(value) ? value : Buffer.from(textOf(value))
    throw new SyntaxError('no cast')
  }

  private next(): RegExpExecArray {
    token.lastIndex = this.at
    const match = token.exec(this.text)
    if (match === null) throw new SyntaxError('unexpected')
    this.at = token.lastIndex
    return match
  }

  private take(mark: string): boolean {
    const before = this.at
    token.lastIndex = before
    const match = token.exec(this.text)
    if (match === null || match[5] !== mark) return false
    this.at = token.lastIndex
    return true
  }

  private expect(mark: string): void {
    if (!this.take(mark)) throw new SyntaxError(`no ${mark}`)
  }
}

/** Applies the sign of `-Inf`; numbers with digits include theirs. */
function signed(sign: string, value: Computed): Computed {
  if (typeof value !== 'number') throw new SyntaxError('no number')
  return sign === '-' ? -value : value
}

function call(name: string, values: readonly Computed[]): Computed {
  if (name === 'char') return values.map((value) => String.fromCodePoint(Number(value))).join('')
  if (values.includes(null)) return null
  const strings = values.map((value) => textOf(value as Exclude<Computed, null>))
  if (name === 'replace' && strings.length === 3) {
    const [text = '', from = '', to = ''] = strings
    return from === '' ? text : text.replaceAll(from, () => to)
  }
  if (name === 'unistr' && strings.length === 1) return unistr(nonNull(strings[0]))
  throw new SyntaxError('unknown function')
}

/** Decodes \XXXX, \uXXXX, \+XXXXXX, \UXXXXXXXX and \\. */
function unistr(text: string): string {
  return text.replace(
    /\\(?:(\\)|u([0-9a-fA-F]{4})|\+([0-9a-fA-F]{6})|U([0-9a-fA-F]{8})|([0-9a-fA-F]{4}))/g,
    (_, ...parts) => {
      const [backslash, ...codes] = parts as (string | undefined)[]
      if (backslash !== undefined) return backslash
      return String.fromCodePoint(Number.parseInt(codes.find((code) => code !== undefined) ?? '0', 16))
    },
  )
}

function textOf(value: Exclude<Computed, null>): string {
  return Buffer.isBuffer(value) ? value.toString('utf8') : String(value)
}
