// Planner rule: moves filter conditions towards the scans, through projections, sorts, joins, unions, DISTINCT and
// groupings, where this does not change the result. Conditions that compare both sides of a join may become join keys
// (join-keys.ts).

import { allOf, columnsOf, conjuncts, remapColumns } from '../typing/walk-expression.js'
import { withJoinKeys } from './join-keys.js'
import type { Expression, Plan } from './plan.js'
import { isStable } from './volatile.js'
import { mapInputs, substitute } from './walk-plan.js'

type Join = Extract<Plan, { kind: 'join' }>

export function pushFilters(plan: Plan): Plan {
  if (plan.kind !== 'filter' || plan.viewSide !== undefined) return mapInputs(plan, pushFilters)
  return push(plan.input, conjuncts(plan.predicate))
}

/** The input with the conditions applied as deep as possible. */
function push(input: Plan, conditions: readonly Expression[]): Plan {
  switch (input.kind) {
    case 'filter':
      // The rows of a live view that are computed: the ranges are not known yet.
      if (input.viewSide !== undefined) return stay(input, conditions)
      return push(input.input, [...conjuncts(input.predicate), ...conditions])
    case 'scan': {
      const filter = allOf(input.filter === null ? conditions : [...conjuncts(input.filter), ...conditions])
      return { ...input, filter }
    }
    case 'project':
      return pushThroughProject(input, conditions)
    case 'sort':
      return input.limit === null ? { ...input, input: push(input.input, conditions) } : stay(input, conditions)
    case 'distinct':
      return { ...input, input: push(input.input, conditions) }
    case 'aggregate':
      return pushThroughGroups(input, conditions)
    case 'set':
      return input.operation === 'union'
        ? { ...input, left: push(input.left, conditions), right: push(input.right, conditions) }
        : stay(input, conditions)
    case 'join':
      return pushThroughJoin(input, conditions)
    default:
      return stay(input, conditions)
  }
}

function stay(input: Plan, conditions: readonly Expression[]): Plan {
  const below = pushFilters(input)
  const predicate = allOf(conditions)
  return predicate === null ? below : { kind: 'filter', columns: below.columns, input: below, predicate }
}

function split(
  conditions: readonly Expression[],
  test: (condition: Expression) => boolean,
): [Expression[], Expression[]] {
  return [conditions.filter(test), conditions.filter((condition) => !test(condition))]
}

function pushThroughProject(input: Extract<Plan, { kind: 'project' }>, conditions: readonly Expression[]): Plan {
  const movable = (condition: Expression): boolean =>
    [...columnsOf(condition)].every((index) => {
      const made = input.expressions[index]
      return made !== undefined && isStable(made)
    })
  const [down, up] = split(conditions, movable)
  if (down.length === 0) return stay(input, conditions)
  const below = push(
    input.input,
    down.map((condition) => substitute(condition, input.expressions)),
  )
  const projected: Plan = { ...input, input: below }
  const predicate = allOf(up)
  return predicate === null ? projected : { kind: 'filter', columns: input.columns, input: projected, predicate }
}

/** A condition over group keys alone selects whole groups, so it may be applied before grouping. */
function pushThroughGroups(input: Extract<Plan, { kind: 'aggregate' }>, conditions: readonly Expression[]): Plan {
  const { keys } = input
  const overKeys = (condition: Expression): boolean => {
    const columns = [...columnsOf(condition)]
    return columns.length > 0 && columns.every((index) => index < keys.length) && keys.every(isStable)
  }
  const [down, up] = split(conditions, overKeys)
  if (down.length === 0) return stay(input, conditions)
  const below = push(
    input.input,
    down.map((condition) => substitute(condition, keys)),
  )
  const groups: Plan = { ...input, input: below }
  const predicate = allOf(up)
  return predicate === null ? groups : { kind: 'filter', columns: input.columns, input: groups, predicate }
}

// Joins -------------------------------------------------------------------------------------------------------------

/** Join types for which filtering one side before the join gives the same result as after it. */
const leftSafe: readonly Join['join'][] = ['inner', 'cross', 'left', 'asof', 'lt']
const rightSafe: readonly Join['join'][] = ['inner', 'cross', 'right']

function pushThroughJoin(input: Join, conditions: readonly Expression[]): Plan {
  const width = input.left.columns.length
  const left: Expression[] = []
  const right: Expression[] = []
  const up: Expression[] = []
  for (const condition of conditions) {
    const columns = [...columnsOf(condition)]
    const canMove = columns.length > 0 && isStable(condition)
    if (canMove && leftSafe.includes(input.join) && columns.every((index) => index < width)) left.push(condition)
    else if (canMove && rightSafe.includes(input.join) && columns.every((index) => index >= width)) {
      right.push(remapColumns(condition, (index) => index - width))
    } else up.push(condition)
  }
  const { plan, rest } = withJoinKeys({ ...input, left: push(input.left, left), right: push(input.right, right) }, up)
  const predicate = allOf(rest)
  return predicate === null ? plan : { kind: 'filter', columns: input.columns, input: plan, predicate }
}
