// A security token service over HTTP, for tests: the action AssumeRole. It verifies signatures by computing them itself,
// and hands out numbered keys.

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { refusal } from './s3-service.js'

export interface StsService {
  readonly endpoint: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** The forms of the requests so far. */
  readonly requests: URLSearchParams[]
  /** The response to all requests instead; null: none. */
  refuse: { readonly status: number; readonly code: string; message: string } | null
  /** Instead of one from now on. */
  expiration: string | null
  close(): Promise<void>
}

export async function openStsService(): Promise<StsService> {
  const keys = { accessKeyId: 'AKIDSTS', secretAccessKey: 'sts/secret' }
  const service: Omit<StsService, 'endpoint' | 'close'> = { ...keys, requests: [], refuse: null, expiration: null }
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks)
      const form = new URLSearchParams(body.toString())
      service.requests.push(form)
      const wrong = refusal(request, new URL(request.url ?? '/', 'http://sts'), body, keys, 'sts')
      const refused = wrong === '' ? service.refuse : { status: 403, code: wrong, message: '' }
      const reply =
        refused === null
          ? { status: 200, xml: keysXml(service.requests.length, form, service.expiration) }
          : { status: refused.status, xml: errorXml(refused) }
      response.writeHead(reply.status, { 'content-type': 'text/xml' }).end(reply.xml)
    })
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const { port } = server.address() as AddressInfo
  return Object.assign(service, {
    endpoint: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise<void>((closed) => {
        server.close(() => closed())
        server.closeAllConnections()
      }),
  })
}

function keysXml(number: number, form: URLSearchParams, expiration: string | null): string {
  const ends = expiration ?? new Date(Date.now() + Number(form.get('DurationSeconds')) * 1000).toISOString()
  return `<?xml version="1.0"?><AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
    <AssumedRoleUser><Arn>arn:aws:sts::1:assumed-role/r/s</Arn></AssumedRoleUser>
    <Credentials><AccessKeyId>TEMPORARY${number}</AccessKeyId><SecretAccessKey>hidden/${number}&amp;x</SecretAccessKey>
    <SessionToken>token==${number}</SessionToken><Expiration>${ends}</Expiration></Credentials>
  </AssumeRoleResult></AssumeRoleResponse>`
}

function errorXml({ code, message }: { readonly code: string; readonly message: string }): string {
  return `<ErrorResponse><Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error></ErrorResponse>`
}
