// Statements that drivers send again and again without a name, parsed and described anew each time: what their texts are is
// known. Those with parameters, since texts that hold their values hardly come twice.

import type { Session } from '../api/session.js'
import type { Description, ParsedStatement } from '../api/statements.js'
import { notesAbout } from '../base/notes.js'
import { holdsSecret } from '../base/secret-text.js'
import type { Parameter } from '../sql/catalog.js'
import { describeStatement } from '../sql/statements/describe.js'
import type { PlannedStatement } from '../sql/statements/planned.js'
import { demandStatementRights } from '../sql/statements/statement-rights.js'
import { validationOf } from './plan-helpers.js'

const textsMax = 256
const textCharactersMax = 4096

interface Described {
  /** What it depends on besides the statement. */
  readonly key: string
  readonly epoch: number
  readonly description: Description
}

export class PreparedTexts {
  readonly #texts = new Map<string, readonly ParsedStatement[]>()
  readonly #described = notesAbout<ParsedStatement, Described>()

  /** `read` parses; the same statements for the same text. */
  parse(text: string, read: (text: string) => readonly ParsedStatement[]): readonly ParsedStatement[] {
    if (text.length > textCharactersMax || !text.includes('$')) return read(text)
    const known = this.#texts.get(text)
    if (known !== undefined) this.#texts.delete(text)
    const statements = known ?? read(text)
    if (known === undefined && holdsSecret(text)) return statements
    this.#texts.set(text, statements)
    if (this.#texts.size > textsMax) this.#texts.delete(this.#texts.keys().next().value as string)
    return statements
  }

  /**
   * Kept for queries and for rows to insert while the catalog has not changed: their columns and parameters are those of the
   * tables that they name. Names and types of columns depend on the dialect. `plan` plans with these parameters.
   */
  describe(
    parsed: ParsedStatement,
    session: Session,
    oids: readonly number[],
    epoch: number,
    plan: (parameters: readonly Parameter[]) => PlannedStatement,
  ): Description {
    const { statement } = parsed
    demandStatementRights(statement, session)
    const key = `${session.dialect.name} ${oids.join()}`
    const known = this.#described.get(parsed)
    if (known !== undefined && known.epoch === epoch && known.key === key) return known.description
    const description = describeStatement(parsed, oids, (parameters) => validationOf(plan(parameters)))
    if (statement.kind === 'query' || statement.kind === 'insert')
      this.#described.set(parsed, { key, epoch, description })
    return description
  }
}
