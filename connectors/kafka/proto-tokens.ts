// Tokeniser of .proto files (Protobuf schemas): splits the text into words, numbers, strings and symbols, and skips
// blanks and comments.

export interface ProtoToken {
  readonly kind: 'word' | 'number' | 'string' | 'symbol'
  /** Of a string, what is between the quotes, with its escapes. */
  readonly text: string
  readonly line: number
}

export class ProtoError extends Error {
  constructor(message: string, line: number) {
    super(`${message} [line=${line}]`)
    this.name = 'ProtoError'
  }
}

const blanks = /(?:[\s\ufeff]+|\/\/[^\n]*|\/\*[\s\S]*?\*\/)+/y
const word = /[A-Za-z_][A-Za-z0-9_]*/y
/** One that begins with a dot is two tokens: only options, which are skipped, have such a number. */
const number = /0[xX][0-9a-fA-F]+|[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?/y
const string = /"((?:[^"\\\n]|\\[\s\S])*)"|'((?:[^'\\\n]|\\[\s\S])*)'/y
const symbol = /[{}[\]()<>=;,.:+\-/]/y
const textMax = 4 * 1024 * 1024

/** Throws ProtoError. */
export function protoTokens(text: string): readonly ProtoToken[] {
  if (text.length > textMax) throw new ProtoError('the text is too long', 1)
  const tokens: ProtoToken[] = []
  let line = 1
  let at = skip(text, 0)
  line += lines(text, 0, at)
  while (at < text.length) {
    const token = tokenAt(text, at, line)
    if (token === null) throw new ProtoError(`unexpected character '${text[at]}'`, line)
    tokens.push(token.token)
    const next = skip(text, token.end)
    line += lines(text, at, next)
    at = next
  }
  return tokens
}

function tokenAt(text: string, at: number, line: number): { readonly token: ProtoToken; readonly end: number } | null {
  const forms = [
    ['word', word],
    ['number', number],
    ['string', string],
    ['symbol', symbol],
  ] as const
  for (const [kind, pattern] of forms) {
    pattern.lastIndex = at
    const match = pattern.exec(text)
    if (match !== null)
      return { token: { kind, text: match[1] ?? match[2] ?? match[0], line }, end: at + match[0].length }
  }
  return null
}

function skip(text: string, at: number): number {
  blanks.lastIndex = at
  return blanks.test(text) ? blanks.lastIndex : at
}

function lines(text: string, from: number, to: number): number {
  let count = 0
  for (let at = text.indexOf('\n', from); at >= 0 && at < to; at = text.indexOf('\n', at + 1)) count++
  return count
}
