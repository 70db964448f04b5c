// SQL functions: geohashes, parts of IPv4 networks, containment of points, and distances on the globe.

import { SqlError } from '../../base/errors.js'
import { dataType } from '../../types/column-types.js'
import { displayText } from '../../types/convert.js'
import { formatDouble } from '../../types/number.js'
import { geohashFromCoordinates, parseSubnet } from '../../types/text.js'
import type { Value } from '../../types/value.js'
import type { BoundArgument, ScalarFunction } from './function-types.js'

export const earthRadiusMeters = 6_371_000.8

function checkDegrees(argument: BoundArgument | undefined, name: string, limit: number): void {
  const value = argument?.constant
  if (typeof value !== 'number' || Math.abs(value) <= limit) return
  throw new SqlError(`${name} must be in [-${limit}.0..${limit}.0] range`, argument?.position ?? 0)
}

/** Checks latitude and longitude of two points. */
function checkPlaces(args: readonly BoundArgument[]): void {
  for (const [index, { constant, position }] of args.slice(0, 4).entries()) {
    const [name, limit] = index % 2 === 0 ? ['latitude', 90] : ['longitude', 180]
    if (typeof constant === 'number' && Math.abs(constant) > Number(limit))
      throw new SqlError(`${name} must be between -${limit} and ${limit} [value=${formatDouble(constant)}]`, position)
  }
}

export const geographyFunctions: readonly ScalarFunction[] = [
  {
    name: 'make_geohash',
    takes: ['DOUBLE', 'DOUBLE', 'INT'],
    gives: (args) => dataType('GEOHASH', typeof args[2]?.constant === 'number' ? args[2].constant : 60),
    description: 'Geohash of longitude and latitude with a number of bits.',
    example: ['make_geohash(13.4, 52.5, 20)', 'u33d'],
    check: (args) => {
      const bits = args[2]?.constant
      if (bits === undefined) {
        const message = 'argument type mismatch for function `make_geohash` at #3 expected: INT constant, actual: INT'
        throw new SqlError(message, args[2]?.position ?? 0)
      }
      if (typeof bits !== 'number' || bits < 1 || bits > 60)
        throw new SqlError('precision must be in [1..60] range', args[2]?.position ?? 0)
      checkDegrees(args[0], 'longitude', 180)
      checkDegrees(args[1], 'latitude', 90)
    },
    eval: ([longitude, latitude, bits]: readonly [number, number, number]) => {
      if (Math.abs(longitude) > 180 || Math.abs(latitude) > 90) return null
      return geohashFromCoordinates(longitude, latitude, bits)
    },
  },
  {
    name: 'within',
    takes: ['GEOHASH', 'GEOHASH'],
    more: 'GEOHASH',
    gives: 'BOOLEAN',
    description: 'Whether a geohash is within one of the others, which are shorter.',
    example: ["cast('u33d8' as geohash(5c)) within (#u33)", 'true'],
    seesNull: true,
    eval: (args, { argTypes }) => {
      const [value, ...areas] = args
      const bits = argTypes[0]?.a ?? 0
      return areas.some((area, index) => {
        const areaBits = argTypes[index + 1]?.a ?? 0
        if (typeof value !== 'bigint' || typeof area !== 'bigint' || areaBits > bits) return false
        return value >> BigInt(bits - areaBits) === area
      })
    },
  },
  ...(['TEXT', 'IPv4'] as const).map(
    (type): ScalarFunction => ({
      name: 'host',
      takes: [type],
      gives: 'STRING',
      description: 'The address as text, without the network prefix length.',
      example: type === 'TEXT' ? ["host('10.0.0.1/24')", '10.0.0.1'] : null,
      eval: ([address]: readonly [Exclude<Value, null>], { argTypes: [from = dataType('STRING')] }) =>
        displayText(address, from).replace(/\/.*/, ''),
    }),
  ),
  {
    name: 'netmask',
    takes: ['TEXT'],
    gives: 'IPv4',
    description: 'The mask of a network.',
    example: ["netmask('1.2.3.0/24')", '255.255.255.0'],
    eval: ([text]) => parseSubnet(String(text))?.mask || null,
  },
  {
    name: 'within_box',
    takes: ['DOUBLE', 'DOUBLE', 'DOUBLE', 'DOUBLE', 'DOUBLE', 'DOUBLE'],
    gives: 'BOOLEAN',
    description: 'Whether the point (x, y) is in the box (x1, y1) to (x2, y2).',
    example: ['within_box(1, 1, 0, 0, 2, 2)', 'true'],
    eval: (args) => {
      const [x = 0, y = 0, x1 = 0, y1 = 0, x2 = 0, y2 = 0] = args as number[]
      return x >= x1 && x <= x2 && y >= y1 && y <= y2
    },
  },
  {
    name: 'within_radius',
    takes: ['DOUBLE', 'DOUBLE', 'DOUBLE', 'DOUBLE', 'DOUBLE'],
    gives: 'BOOLEAN',
    description: 'Whether the point (x, y) is within a radius of (cx, cy).',
    example: ['within_radius(1, 1, 0, 0, 2)', 'true'],
    eval: (args) => {
      const [x = 0, y = 0, cx = 0, cy = 0, radius = 0] = args as number[]
      return Math.hypot(x - cx, y - cy) <= radius
    },
  },
  {
    name: 'geo_distance_meters',
    takes: ['DOUBLE', 'DOUBLE', 'DOUBLE', 'DOUBLE'],
    gives: 'DOUBLE',
    description: 'Great-circle distance between (latitude, longitude) and (latitude, longitude).',
    example: null,
    check: checkPlaces,
    eval: (args) => distanceMeters(args as number[]),
  },
  {
    name: 'geo_within_radius_latlon',
    takes: ['DOUBLE', 'DOUBLE', 'DOUBLE', 'DOUBLE', 'DOUBLE'],
    gives: 'BOOLEAN',
    description: 'Whether two points are at most a number of metres apart.',
    example: null,
    check: checkPlaces,
    eval: (args) => distanceMeters(args as number[]) <= (args[4] as number),
  },
]

/** Distance in metres between two points, each given by latitude and longitude in degrees. */
export function distanceMeters([
  latitude1 = 0,
  longitude1 = 0,
  latitude2 = 0,
  longitude2 = 0,
]: readonly number[]): number {
  const radians = (degrees: number): number => (degrees * Math.PI) / 180
  const a =
    Math.sin(radians(latitude2 - latitude1) / 2) ** 2 +
    Math.cos(radians(latitude1)) * Math.cos(radians(latitude2)) * Math.sin(radians(longitude2 - longitude1) / 2) ** 2
  return 2 * earthRadiusMeters * Math.asin(Math.min(1, Math.sqrt(a)))
}
