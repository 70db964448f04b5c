// GET /api/v1/sql/validate: whether a statement could run, without running it.

import { answerOf } from '../common/answers.js'
import type { Exchange, HttpContext } from './context.js'
import { columnJson, errorBody } from './exec-json.js'
import { ExecRequestError, parseExecRequest } from './exec-request.js'
import { contentTypes, reply, replyJson, statusOf } from './replies.js'

export function handleValidate(context: HttpContext, { response, query, session }: Exchange): void {
  let sql: string | null = ''
  try {
    const exec = parseExecRequest(query, undefined, { timeoutMs: 0 })
    sql = exec.sql
    const { queryType, columns, timestampIndex } = context.engine.validate(sql, session)
    const kind = queryType === 'SELECT' ? {} : { queryType }
    const rows = columns === null ? {} : { columns: columns.map(columnJson), timestamp: timestampIndex }
    replyJson(response, 200, { query: sql, ...kind, ...rows })
  } catch (error) {
    if (error instanceof ExecRequestError) sql = error.sql
    const { blame, message, place, hint } = answerOf(error)
    reply(response, statusOf(blame), contentTypes.json, errorBody(sql, message, place, hint))
  }
}
