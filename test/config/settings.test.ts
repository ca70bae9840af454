import { describe, expect, it } from 'vitest';
import { describeSettings, readFlags, readSettings } from '../../src/config/settings.ts';
import { didYouMean } from '../../src/config/suggestion.ts';

const SETTINGS = {
  'auth-url': { argument: 'URL', description: 'Base URL' },
  realm: { argument: 'NAME', description: 'Realm', default: 'dx' },
  verbose: { description: 'Say more' },
} as const;

const given = (args: string[], env: Record<string, string> = {}) => readSettings(SETTINGS, args, env).given;

describe('a setting', () => {
  it('is read from a flag, with its value after a space or an equals sign', () => {
    expect(given(['--auth-url', 'x'])['auth-url']).toEqual({ key: '--auth-url', text: 'x' });
    expect(given(['--auth-url=a=b'])['auth-url']?.text).toBe('a=b');
    expect(given(['--verbose']).verbose?.text).toBe('true');
    expect(given(['--verbose=false']).verbose?.text).toBe('false');
    const short = { filename: { argument: 'FILE', description: 'Manifests', letter: 'f' } } as const;
    for (const args of [['-f', 'x'], ['-fx'], ['--filename', 'x']]) {
      expect(readSettings(short, args, {}).given.filename).toEqual({ key: '--filename', text: 'x' });
    }
  });

  it('is read from its environment twin; an empty one counts as absent', () => {
    expect(given([], { TOKEN_SIDECAR_AUTH_URL: 'x' })['auth-url']).toEqual({
      key: 'TOKEN_SIDECAR_AUTH_URL',
      text: 'x',
    });
    expect(given([], { TOKEN_SIDECAR_AUTH_URL: '' })).toEqual({});
  });

  it('is taken from the flag when both are there', () => {
    expect(given(['--realm=flag'], { TOKEN_SIDECAR_REALM: 'env' }).realm?.text).toBe('flag');
  });

  it('ignores variables it does not know: Kubernetes makes some for a Service named like us', () => {
    expect(
      given([], { TOKEN_SIDECAR_PORT: 'tcp://10.0.0.1:80', TOKEN_SIDECAR_SERVICE_HOST: '10.0.0.1' }),
    ).toEqual({});
  });
});

it.each([
  [['realm'], 'unexpected argument realm; did you mean "--realm"?'],
  [['--verbose', 'false'], 'unexpected argument false'],
])('a command that takes flags alone refuses %j', (args, message) => {
  expect(() => readFlags(SETTINGS, args, {})).toThrow(new RegExp(`^${message.replace('?', '\\?')}$`));
});

it.each([
  [['--auth-ur', 'x'], 'unknown flag --auth-ur; did you mean "--auth-url"?'],
  [['--secret=hunter2'], 'unknown flag --secret'],
  [['-x'], 'unknown flag -x'],
  [['--auth-url'], '--auth-url needs a value: URL'],
  [['--auth-url', '--verbose'], '--auth-url needs a value: URL'],
  [['--realm=a', '--realm=b'], '--realm is given more than once'],
  [['-Vx'], 'unknown flag -V'],
])('%j is a usage error', (args, message) => {
  expect(() => given(args)).toThrowError(expect.objectContaining({ code: 'usage', exitCode: 64, message }));
});

it('leaves words that are no flags as positionals', () => {
  expect(readSettings(SETTINGS, ['hash', '--verbose', '-'], {}).positionals).toEqual(['hash', '-']);
});

it('suggests a name only when it is close', () => {
  expect(didYouMean('lisen', ['listen', 'admin'])).toBe('; did you mean "listen"?');
  expect(didYouMean('banana', ['listen', 'admin'])).toBe('');
  expect(didYouMean('nmae', ['name', 'credential'])).toBe('; did you mean "name"?');
  expect(didYouMean('chekc', ['check', 'proxy'])).toBe('; did you mean "check"?');
  expect(didYouMean('leaveDelay', ['listen', 'drainDelay'])).toBe('; did you mean "drainDelay"?');
  expect(didYouMean('captured-ports', ['listen'])).toBe('');
});

it('describes every flag with its variable and default', () => {
  expect(describeSettings(SETTINGS)).toContain('--realm NAME\n      Realm (TOKEN_SIDECAR_REALM, default dx)');
});
