/** Profiles that were resolved before are not resolved again, whatever asks, and nothing of it is ever out of date. */

import { expect, it } from 'vitest';
import type { ProfileOverrides, ProfileResolution } from '../../../src/injector/pod/cluster.ts';
import type { ValidProfile } from '../../../src/injector/profiles/profile.ts';
import { rememberResolutions } from '../../../src/injector/profiles/resolve-profiles.ts';
import { CREDENTIAL, judged, ROUTE } from './pods-with-profiles.ts';

const MAX_RESOLUTIONS = 500;

const MAX_CHARACTERS = 4 * 1024 * 1024;

const DEFAULTS = { allowInsecureTokenUrl: false };

function valid(name: string, generation = 1): ValidProfile {
  const found = judged({ name, generation, spec: { credentials: [CREDENTIAL], routes: [ROUTE] } });
  if (found.state !== 'valid') throw new Error('not valid');
  return found;
}

function counting() {
  const known = rememberResolutions();
  let resolved = 0;
  const refused = (expected: string): ProfileResolution => ({
    state: 'refused',
    problems: [{ key: 'spec', expected }],
  });
  return {
    resolved: () => resolved,
    of(profiles: readonly ValidProfile[], overrides = {}, defaults: object = DEFAULTS, text = 'x') {
      return known.of(profiles, overrides as ProfileOverrides, defaults as typeof DEFAULTS, () => {
        resolved++;
        return refused(text);
      });
    },
  };
}

it('the same profiles and words of a pod are resolved once', () => {
  const { of, resolved } = counting();
  const [a, b] = [valid('a'), valid('b')];
  expect(of([a, b], { scope: 'read' })).toBe(of([a, b], { scope: 'read' }));
  expect(resolved()).toBe(1);
});

it('other profiles, order, generation, pod or settings are resolved anew', () => {
  const { of, resolved } = counting();
  const [a, b] = [valid('a'), valid('b')];
  of([a, b]);
  of([b, a]);
  of([a]);
  of([valid('a', 2)]);
  of([a], { scope: 'read' });
  of([a], { audience: 'read' });
  of([a], {}, { ...DEFAULTS });
  expect(resolved()).toBe(7);
});

it('resolutions are bounded in number: the one used longest ago goes', () => {
  const { of, resolved } = counting();
  const profile = valid('a');
  const ask = (scope: number) => of([profile], { scope: String(scope) });
  for (let scope = 0; scope < MAX_RESOLUTIONS; scope++) ask(scope);
  ask(0);
  expect(resolved()).toBe(MAX_RESOLUTIONS);
  ask(MAX_RESOLUTIONS);
  ask(0);
  expect(resolved()).toBe(MAX_RESOLUTIONS + 1);
  ask(1);
  expect(resolved()).toBe(MAX_RESOLUTIONS + 2);
});

it('resolutions are bounded in characters, and one larger than an eighth is not kept', () => {
  const { of, resolved } = counting();
  const profile = valid('a');
  const ask = (scope: number, characters: number) =>
    of([profile], { scope: String(scope) }, DEFAULTS, 'x'.repeat(characters));
  ask(0, MAX_CHARACTERS / 8);
  ask(0, MAX_CHARACTERS / 8);
  expect(resolved()).toBe(2);
  const part = MAX_CHARACTERS / 10;
  for (let scope = 1; scope <= 10; scope++) ask(scope, part);
  expect(resolved()).toBe(12);
  ask(2, part);
  expect(resolved()).toBe(12);
  ask(1, part);
  expect(resolved()).toBe(13);
});
