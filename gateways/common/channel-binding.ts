// Computes the SCRAM channel binding tls-server-end-point (RFC 5929): a hash of the server's certificate. The hash
// function is that of the certificate's signature, with SHA-256 in place of weaker ones.
//
//   Certificate => SEQUENCE { tbs SEQUENCE, algorithm SEQUENCE { OBJECT IDENTIFIER, .. }, signature }      DER

import { createHash } from 'node:crypto'

/** Hash function by the signature algorithm's object identifier, in hex. */
const hashes: Readonly<Record<string, 'sha256' | 'sha384' | 'sha512'>> = {
  // RSA with MD5, SHA-1, SHA-256, SHA-384, SHA-512
  ...{ '2a864886f70d010104': 'sha256', '2a864886f70d010105': 'sha256', '2a864886f70d01010b': 'sha256' },
  ...{ '2a864886f70d01010c': 'sha384', '2a864886f70d01010d': 'sha512' },
  // ECDSA with SHA-1, SHA-256, SHA-384, SHA-512
  ...{ '2a8648ce3d0401': 'sha256', '2a8648ce3d040302': 'sha256' },
  ...{ '2a8648ce3d040303': 'sha384', '2a8648ce3d040304': 'sha512' },
}

/** Returns null when the signature algorithm names no hash function (Ed25519), so that binding is not possible. */
export function serverEndPoint(certificate: Buffer): Buffer | null {
  const whole = elementAt(certificate, 0)
  const signed = whole === null ? null : elementAt(certificate, whole.start)
  const algorithm = signed === null ? null : elementAt(certificate, signed.end)
  const name = algorithm === null ? null : elementAt(certificate, algorithm.start)
  if (name === null) return null
  const hash = hashes[certificate.toString('hex', name.start, name.end)]
  return hash === undefined ? null : createHash(hash).update(certificate).digest()
}

/** Returns the range of the content of a DER element; null when the bytes are truncated. */
function elementAt(bytes: Buffer, at: number): { readonly start: number; readonly end: number } | null {
  const first = bytes[at + 1]
  if (first === undefined) return null
  const lengthBytes = first < 0x80 ? 0 : first & 0x7f
  const start = at + 2 + lengthBytes
  if (start > bytes.length || lengthBytes > 4) return null
  const length = lengthBytes === 0 ? first : bytes.readUIntBE(at + 2, lengthBytes)
  return start + length > bytes.length ? null : { start, end: start + length }
}
