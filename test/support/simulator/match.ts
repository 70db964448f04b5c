// Finds out which pending requests have taken effect in the state of a simulated server, while it runs or after a
// crash, and checks that this set is permitted. Acknowledged requests are part of the base model, so all of them must
// have taken effect. Of the pending requests of each kind (line protocol, commands), the first ones may have.
//
// If the server may reject requests, since the disk fails or memory is short, any pending request may be missing. The
// search applies each request before it tries to do without it, and gives up after 20,000 states.

import { applyStep, difference, type Model, type Observed } from './model.js'
import type { Request } from './requests.js'

export interface UnderWay {
  readonly request: Request
  /** Steps that the base model holds already, since a reader has seen them. */
  done: number
}

export interface Match {
  readonly model: Model
  /** Steps done, by request. */
  readonly done: ReadonlyMap<UnderWay, number>
}

interface Search {
  readonly observed: Observed
  readonly lines: readonly UnderWay[]
  readonly commands: readonly UnderWay[]
  readonly mayRefuse: boolean
  tried: number
  /** Of the first few candidates, the base first. */
  readonly differences: Set<string>
}

const triedMax = 20_000
const differencesMax = 8

/** A match, or what differs from the base. */
export function findMatch(
  base: Model,
  underWay: readonly UnderWay[],
  observed: Observed,
  mayRefuse: boolean,
): Match | string {
  const lines = underWay.filter(({ request }) => request.lane === 'lines')
  const commands = underWay.filter(({ request }) => request.lane === 'command')
  const search: Search = { observed, lines, commands, mayRefuse, tried: 0, differences: new Set() }
  return visit(search, base, 0, 0, new Map()) ?? [...search.differences].join('; or ')
}

function visit(
  search: Search,
  model: Model,
  line: number,
  command: number,
  done: ReadonlyMap<UnderWay, number>,
): Match | undefined {
  if (search.tried++ > triedMax) return undefined
  const found = difference(model, search.observed)
  if (found === undefined) return { model, done }
  if (search.differences.size < differencesMax) search.differences.add(found)
  const nextLine = search.lines[line]
  const nextCommand = search.commands[command]
  const stepsDone = nextLine === undefined ? 0 : (done.get(nextLine) ?? nextLine.done)
  if (nextLine !== undefined) {
    const step = nextLine.request.steps[stepsDone]
    const steps = new Map(done).set(nextLine, stepsDone + 1)
    if (step === undefined) return visit(search, model, line + 1, command, done)
    const match = visit(search, applyStep(model, step), line, command, steps)
    if (match !== undefined) return match
  }
  // A request that is half done comes before any command.
  if (nextCommand !== undefined && stepsDone === 0) {
    const step = nextCommand.request.steps[nextCommand.done]
    const steps = new Map(done).set(nextCommand, nextCommand.done + 1)
    const next = step === undefined ? model : applyStep(model, step)
    const match = visit(search, next, line, command + 1, step === undefined ? done : steps)
    if (match !== undefined) return match
  }
  if (!search.mayRefuse) return undefined
  const without = nextLine === undefined ? undefined : visit(search, model, line + 1, command, done)
  return without ?? (nextCommand === undefined ? undefined : visit(search, model, line, command + 1, done))
}
