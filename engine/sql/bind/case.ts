// Binds CASE in both forms (conditions, or an operand compared with values) and switch(), and determines the common
// type of the results.

import { SqlError } from '../../base/errors.js'
import { type DataType, dataType } from '../../types/column-types.js'
import { typeName } from '../../types/compare.js'
import { isNumber, isPlainText, isText, isTime } from '../../types/convert.js'
import type * as ast from '../ast/ast.js'
import { switchText } from '../parse/text.js'
import type { Expression } from '../plan/plan.js'
import { charactersAsStrings } from '../typing/characters.js'
import { besideDecimals } from '../typing/exact-numbers.js'
import { scalarCall } from '../typing/make-call.js'
import { castAlternative, isUntypedNull, unify } from '../typing/types.js'
import { visitExpression } from '../typing/walk-expression.js'
import { bindSame } from './comparison.js'
import { bindExpression, booleanOperand, type ExpressionScope } from './expression.js'

/** Limit for the size of the operand times the number of branches. */
const repeatedPartsMax = 4_000

export function bindCase(expression: ast.CaseExpression, scope: ExpressionScope): Expression {
  const { operand, branches, otherwise, position } = expression
  const subject = operand === null ? null : bindExpression(operand, scope)
  if (subject !== null) refuseRepeated(subject, branches.length)
  const conditions = branches.map(({ when }) => {
    const condition = bindExpression(when, scope)
    // A string may not be a number, so comparing it with one is an error; a symbol is compared with the number's text.
    if (subject !== null && isPlainText(subject.type) && isNumber(condition.type)) {
      const types = `[expected=${typeName(subject.type)}, actual=${typeName(condition.type)}]`
      throw new SqlError(`type mismatch ${types}`, when.position)
    }
    if (subject !== null) return bindSame(subject, condition, when.position, scope.context)
    if (isUntypedNull(condition) && when.kind === 'null')
      throw new SqlError('BOOLEAN expected, found NULL', when.position)
    if (condition.type.name !== 'BOOLEAN' && !isUntypedNull(condition))
      throw new SqlError(`BOOLEAN expected, found ${typeName(condition.type)}`, condition.position)
    return booleanOperand(condition)
  })
  const written = [...branches.map(({ result }) => result), ...(otherwise === null ? [] : [otherwise])]
  const given = written.map((result) => bindExpression(result, scope))
  const bound = besideDecimals(charactersAsStrings(written, given), scope.context.dialect)
  const values = bound.slice(0, branches.length)
  const rest = bound[branches.length] ?? null
  // With an operand, ELSE comes first: its type determines which mixtures are refused.
  const results = rest === null ? values : switchText(expression) === null ? [...values, rest] : [rest, ...values]
  refuseMixtures(results)
  const type = caseType(unify(results, ''), results)
  const args = conditions.flatMap((condition, index) => [condition, castAlternative(values[index] as Expression, type)])
  if (rest !== null) args.push(castAlternative(rest, type))
  return scalarCall('case', args, position, scope.context)
}

/** `switch(x, 1, 'a', 2, 'b', 'c')` as `case x when 1 then 'a' when 2 then 'b' else 'c' end`. */
export function switched({ args, position }: ast.Call): ast.CaseExpression {
  const [operand = null, ...pairs] = args
  const branches: ast.CaseExpression['branches'][number][] = []
  for (let index = 0; index + 1 < pairs.length; index += 2)
    branches.push({ when: pairs[index] as ast.Expression, result: pairs[index + 1] as ast.Expression })
  const otherwise = pairs.length % 2 === 1 ? (pairs.at(-1) ?? null) : null
  return { kind: 'case', position, operand, branches, otherwise }
}

/** Each branch contains a copy of the operand, so nested CASEs grow exponentially. Throws if there are too many. */
function refuseRepeated(subject: Expression, times: number): void {
  let parts = 0
  visitExpression(subject, () => {
    parts++
  })
  if (parts > 1 && parts * times > repeatedPartsMax)
    throw new SqlError(
      `the operand of CASE is too large [parts=${parts}, branches=${times}, max=${repeatedPartsMax}]: compute it in a sub-query`,
      subject.position,
    )
}

/** Throws if numbers are mixed with timestamps, or geohashes of different precisions. */
function refuseMixtures(results: readonly Expression[]): void {
  const first = results.find((result) => !isUntypedNull(result))
  const other = results.find((result) => first !== undefined && !isUntypedNull(result) && isMixture(first, result))
  if (first === undefined || other === undefined) return
  const [from, to] = [typeName(other.type), typeName(first.type)]
  throw new SqlError(`inconvertible types: ${from} -> ${to} [from=${from}, to=${to}]`, other.position)
}

function isMixture({ type: a }: Expression, { type: b }: Expression): boolean {
  if (a.name === 'GEOHASH' && b.name === 'GEOHASH') return a.a !== b.a
  return (isTime(a) && isNumber(b)) || (isNumber(a) && isTime(b))
}

/** The result of strings is VARCHAR if one of them is; symbols become STRING. */
function caseType(type: DataType, results: readonly Expression[]): DataType {
  if (!isText(type)) return type
  if (results.some((result) => result.type.name === 'VARCHAR')) return dataType('VARCHAR')
  return type.name === 'SYMBOL' ? dataType('STRING') : type
}
