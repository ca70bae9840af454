import { parseArgs } from 'node:util';
import { duration } from '../../src/config/values.ts';

export interface SoakOptions {
  readonly durationMs: number;
  readonly rotations: number;
  readonly tokenLifetimeMs: number;
  /** Requests a second of the short exchanges, at most. */
  readonly rate: number;
}

/** @throws {Error} naming the flag that is wrong. */
export function readOptions(args: readonly string[]): SoakOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      duration: { type: 'string', default: '10m' },
      rotations: { type: 'string', default: '5' },
      'token-lifetime': { type: 'string', default: '8s' },
      rate: { type: 'string', default: '300' },
    },
  });
  const durationMs = milliseconds('duration', values.duration, 10_000, 86_400_000);
  const options = {
    durationMs,
    rotations: wholeNumber('rotations', values.rotations, 0, Math.floor(durationMs / 5000)),
    tokenLifetimeMs: milliseconds('token-lifetime', values['token-lifetime'], 2000, 3_600_000),
    rate: wholeNumber('rate', values.rate, 1, 5000),
  };
  if (options.tokenLifetimeMs % 1000 !== 0) throw new Error('--token-lifetime must be whole seconds');
  return options;
}

function milliseconds(flag: string, text: string, least: number, most: number): number {
  const value = duration.parse(text);
  if (value === undefined || value < least || value > most) {
    throw new Error(
      `--${flag} is ${JSON.stringify(text)}; it must be from ${least / 1000}s to ${most / 1000}s`,
    );
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
