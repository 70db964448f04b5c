// A field in the text form of COPY: letters behind a backslash for what would divide fields or rows.

const letters: Readonly<Record<string, string>> = {
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '\\': '\\\\',
}

export function escapeCopyField(text: string, delimiter: string): string {
  const escaped = text.replace(/[\b\f\n\r\t\v\\]/g, (character) => letters[character] ?? character)
  return delimiter === '\t' ? escaped : escaped.replaceAll(delimiter, `\\${delimiter}`)
}
