import { parseArgs } from 'node:util';
import { formats } from '../../src/config/values.ts';

export interface SoakOptions {
  readonly durationMs: number;
  readonly rotations: number;
  /** How often the configuration file changes. */
  readonly reloads: number;
  readonly tokenLifetimeMs: number;
  /** Requests a second of the short exchanges, at most. */
  readonly rate: number;
  readonly upstream: 'plain' | 'tls';
  /** How long the API keeps connections that carry no request: as Node does, or 5 to 50 ms. */
  readonly keepAlive: 'long' | 'short';
}

/** @throws {Error} naming the flag that is wrong. */
export function readOptions(args: readonly string[]): SoakOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      duration: { type: 'string', default: '10m' },
      rotations: { type: 'string', default: '5' },
      reloads: { type: 'string', default: '5' },
      'token-lifetime': { type: 'string', default: '8s' },
      rate: { type: 'string', default: '300' },
      upstream: { type: 'string', default: 'tls' },
      'keep-alive': { type: 'string', default: 'short' },
    },
  });
  const durationMs = milliseconds('duration', values.duration, 10_000, 86_400_000);
  const options = {
    durationMs,
    rotations: wholeNumber('rotations', values.rotations, 0, Math.floor(durationMs / 5000)),
    reloads: wholeNumber('reloads', values.reloads, 0, Math.floor(durationMs / 2000)),
    tokenLifetimeMs: milliseconds('token-lifetime', values['token-lifetime'], 2000, 3_600_000),
    rate: wholeNumber('rate', values.rate, 1, 5000),
    upstream: oneOf('upstream', values.upstream, ['plain', 'tls']),
    keepAlive: oneOf('keep-alive', values['keep-alive'], ['long', 'short']),
  };
  if (options.tokenLifetimeMs % 1000 !== 0) throw new Error('--token-lifetime must be whole seconds');
  return options;
}

function milliseconds(flag: string, text: string, least: number, most: number): number {
  const value = formats.duration.parse(text);
  if (value === undefined || value < least || value > most) {
    throw new Error(
      `--${flag} is ${JSON.stringify(text)}; it must be from ${least / 1000}s to ${most / 1000}s`,
    );
  }
  return value;
}

function oneOf<const T extends string>(flag: string, text: string, values: readonly T[]): T {
  const value = values.find((candidate) => candidate === text);
  if (value === undefined) {
    throw new Error(`--${flag} is ${JSON.stringify(text)}; it must be ${values.join(' or ')}`);
  }
  return value;
}

function wholeNumber(flag: string, text: string, least: number, most: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= least && value <= most)) {
    throw new Error(
      `--${flag} is ${JSON.stringify(text)}; it must be a whole number from ${least} to ${most}`,
    );
  }
  return value;
}
