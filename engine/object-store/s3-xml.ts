// Reads and writes the few XML documents of the S3 API. They are flat lists of elements that contain text, so regular
// expressions are sufficient.
//
//   ListBucketResult                 Contents {Key, Size, ETag}, NextContinuationToken, IsTruncated
//   InitiateMultipartUploadResult    UploadId
//   Error                            Code, Message

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** Text of the first element with that name; undefined if there is none. */
export function elementText(xml: string, name: string): string | undefined {
  return elementStrings(xml, name)[0]
}

/** Strings of all elements with that name, entities resolved; those of elements that hold others are their XML. */
export function elementStrings(xml: string, name: string): string[] {
  const pattern = new RegExp(`<${name}(?:\\s[^>]*)?>([\\s\\S]*?)</${name}>`, 'g')
  return [...xml.matchAll(pattern)].map(([, text = '']) => (text.includes('<') ? text : unescapeXml(text)))
}

export function escapeXml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}

function unescapeXml(text: string): string {
  return text.replace(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (whole, hex?: string, decimal?: string, name?: string) => {
    if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16))
    if (decimal !== undefined) return String.fromCodePoint(Number(decimal))
    return entities[name ?? ''] ?? whole
  })
}
