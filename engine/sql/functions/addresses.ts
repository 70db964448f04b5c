// SQL functions: operators on IPv4 addresses (adding an offset, distance, bit masks, subnet containment).

import { SqlError } from '../../base/errors.js'
import { parseIpv4, parseSubnet } from '../../types/text.js'
import type { ScalarFunction } from './function-types.js'

/** An address beyond the last one, or 0 (which represents NULL), is NULL. */
function addressOf(value: number): number | null {
  return value > 0 && value <= 0xffffffff ? value : null
}

const stepOn: ScalarFunction = {
  name: '+',
  takes: ['IPv4', 'INT'],
  gives: 'IPv4',
  description: 'The address plus an offset.',
  example: null,
  eval: ([a, b]: readonly [number, number]) => addressOf(a + b),
}

export const addressOperators: readonly ScalarFunction[] = [
  stepOn,
  reversed('+', stepOn),
  {
    name: '-',
    takes: ['IPv4', 'IPv4'],
    gives: 'LONG',
    description: 'Difference of two addresses.',
    example: null,
    eval: ([a, b]: readonly [number, number]) => BigInt(a - b),
  },
  {
    name: '-',
    takes: ['IPv4', 'VARCHAR'],
    gives: 'LONG',
    description: 'Difference of two addresses.',
    example: null,
    check: ([, text]) => {
      if (typeof text?.constant === 'string' && parseIpv4(text.constant) === null)
        throw new SqlError(`invalid IPv4 format: ${text.constant}`, text.position)
    },
    eval: ([a, b]: readonly [number, string]) => {
      const address = parseIpv4(b)
      return address === null ? null : BigInt(a - address)
    },
  },
  {
    name: '-',
    takes: ['IPv4', 'INT'],
    gives: 'IPv4',
    description: 'The address minus an offset.',
    example: null,
    eval: ([a, b]: readonly [number, number]) => addressOf(a - b),
  },
  ...(['&', '|'] as const).map(
    (name): ScalarFunction => ({
      name,
      takes: ['IPv4', 'IPv4'],
      gives: 'IPv4',
      description: 'Bitwise operation on addresses.',
      example: null,
      eval: ([a, b]: readonly [number, number]) => (name === '&' ? a & b : a | b) >>> 0 || null,
    }),
  ),
  {
    name: '~',
    takes: ['IPv4'],
    gives: 'IPv4',
    description: 'Bitwise complement.',
    example: null,
    eval: ([a]: readonly [number]) => ~a >>> 0,
  },
  subnetRow('<<', false),
  subnetRow('<<=', true),
  reversed('>>', subnetRow('<<', false)),
  reversed('>>=', subnetRow('<<=', true)),
]

/** The function with its arguments in reverse order. */
function reversed(
  name: string,
  { takes, description, check, eval: evaluate, ...rest }: ScalarFunction,
): ScalarFunction {
  return {
    ...rest,
    name,
    takes: [...takes].reverse(),
    description: description
      .replace('address is in the subnet', 'subnet on the left contains the address')
      .replace('equal to', 'equals'),
    ...(check === undefined ? {} : { check: (args, position) => check([...args].reverse(), position) }),
    eval: (args, site) => evaluate([...args].reverse(), site),
  }
}

function subnetRow(name: string, orEqual: boolean): ScalarFunction {
  return {
    name,
    takes: ['IPv4', 'TEXT'],
    gives: 'BOOLEAN',
    description: orEqual
      ? 'Whether the address is in the subnet or equal to it.'
      : 'Whether the address is in the subnet.',
    example: null,
    check: ([, subnet]) => {
      const text = subnet?.constant
      if (typeof text === 'string' && parseSubnet(text) === null)
        throw new SqlError(`invalid argument: ${text}`, subnet?.position ?? 0)
    },
    eval: ([address, text]: readonly [number, string]) => {
      const subnet = parseSubnet(text)
      if (subnet === null) return false
      const inside = (address & subnet.mask) >>> 0 === subnet.network
      return inside && (orEqual || subnet.mask !== 0xffffffff)
    },
  }
}
