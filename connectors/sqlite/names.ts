// Converts SQLite names to valid table and column names: replaces invalid characters by underscores and appends
// numbers to names that then collide.

const forbidden = '?,\'"\\/:)(+*%~\u007f\ufeff'
const lastControl = 0x0f
const nameBytesMax = 127

export function tableNameOf(name: string, taken: ReadonlySet<string>): string {
  const plain = replaced(name, forbidden).replace(/\.{2,}/g, '_')
  return unique(plain.replace(/^[. ]+|[. ]+$/g, ''), taken)
}

export function columnNameOf(name: string, taken: ReadonlySet<string>): string {
  return unique(replaced(name, `${forbidden}.-`), taken)
}

function replaced(name: string, characters: string): string {
  let text = ''
  for (const character of name) {
    text += character.charCodeAt(0) <= lastControl || characters.includes(character) ? '_' : character
  }
  return text
}

/** `taken` contains names in lower case. */
function unique(wanted: string, taken: ReadonlySet<string>): string {
  const base = cut(wanted === '' ? '_' : wanted, nameBytesMax)
  if (!taken.has(base.toLowerCase())) return base
  for (let number = 2; ; number++) {
    const name = `${cut(base, nameBytesMax - 8)}_${number}`
    if (!taken.has(name.toLowerCase())) return name
  }
}

function cut(text: string, bytesMax: number): string {
  let end = text.length
  while (Buffer.byteLength(text.slice(0, end)) > bytesMax) end--
  return text.slice(0, end)
}
