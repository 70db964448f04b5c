// Caches parsed statements and their descriptions by text, for drivers that prepare the same unnamed statement again
// and again. Only texts with parameters are cached, because texts with literal values rarely repeat.

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
  /** What the description depends on besides the statement: dialect and parameter types. */
  readonly key: string
  readonly epoch: number
  readonly description: Description
}

export class PreparedTexts {
  readonly #texts = new Map<string, readonly ParsedStatement[]>()
  readonly #described = notesAbout<ParsedStatement, Described>()

  /** `read` parses the text; the same text gives the same statement objects. */
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
   * Cached for queries and INSERT while the catalog epoch is unchanged, because columns and parameters follow from the
   * tables. Names and types of columns depend on the dialect. `plan` plans the statement with the given parameters.
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
