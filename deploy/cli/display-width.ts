// How many columns of a terminal a text takes: East Asian wide characters and emoji take two, combining marks none.

/** Ranges of wide characters, first and last, in order (East Asian Width W and F of Unicode). */
const wide: readonly (readonly [first: number, last: number])[] = [
  [0x1100, 0x115f],
  [0x2329, 0x232a],
  [0x2e80, 0x303e],
  [0x3041, 0xa4cf],
  [0xa960, 0xa97c],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe10, 0xfe19],
  [0xfe30, 0xfe6b],
  [0xff01, 0xff60],
  [0xffe0, 0xffe6],
  [0x16fe0, 0x18cff],
  [0x1aff0, 0x1b2fb],
  [0x20000, 0x3fffd],
]
const emoji = /^\p{Emoji_Presentation}$/u
const nothing = /^[\p{Mn}\p{Me}\p{Cf}]$/u
const plain = /^[\x20-\x7e]*$/

export function displayWidth(text: string): number {
  if (plain.test(text)) return text.length
  let columns = 0
  for (const character of text) columns += widthOf(character)
  return columns
}

function widthOf(character: string): number {
  const code = character.codePointAt(0) ?? 0
  if (code < 0x300) return character === '\u00ad' ? 0 : 1
  if (nothing.test(character)) return 0
  return wide.some(([first, last]) => code >= first && code <= last) || emoji.test(character) ? 2 : 1
}
