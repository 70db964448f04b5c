// The table that a record goes to: a template over topic, key and partition. Names are taken as they are, hyphens and
// dots included; what the server does not take as a table name makes the record a bad one.

/** What a record tells of itself. */
interface RecordPlace {
  readonly topic: string
  readonly partition: number
}

const parameters = ['topic', 'key', 'partition'] as const
type Parameter = (typeof parameters)[number]

export interface TableTemplate {
  /** Every record of a partition goes to the same table. */
  readonly constant: boolean
  name(place: RecordPlace, key: string): string
}

/** Throws Error when the template is none. Empty: the topic. */
export function tableTemplate(template: string): TableTemplate {
  const pieces: readonly Piece[] = template === '' ? [{ literal: '', parameter: 'topic' }] : piecesOf(template)
  return {
    constant: !pieces.some((piece) => piece.parameter === 'key'),
    name: ({ topic, partition }, key) => {
      const values = { topic, key, partition: String(partition) }
      return pieces.map(({ literal, parameter }) => literal + (parameter === null ? '' : values[parameter])).join('')
    },
  }
}

interface Piece {
  readonly literal: string
  readonly parameter: Parameter | null
}

function piecesOf(template: string): Piece[] {
  const pieces: Piece[] = []
  let at = 0
  for (let start = template.indexOf('${'); start >= 0; start = template.indexOf('${', at)) {
    const end = template.indexOf('}', start)
    if (end < 0) throw new Error(`missing } in the table name '${template}'`)
    const name = template.slice(start + 2, end)
    const parameter = parameters.find((known) => known === name)
    if (parameter === undefined) throw new Error(`unknown parameter '${name}' in the table name '${template}'`)
    pieces.push({ literal: template.slice(at, start), parameter })
    at = end + 1
  }
  return [...pieces, { literal: template.slice(at), parameter: null }]
}
