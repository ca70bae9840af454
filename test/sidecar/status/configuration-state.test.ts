import { expect, it } from 'vitest';
import {
  type ConfigurationState,
  describeConfigurationState,
  problemsOfConfiguration,
} from '../../../src/sidecar/status/configuration.ts';

const AT_MS = Date.parse('2030-01-01T03:04:05Z');
const IN_USE = { file: '/etc/token-sidecar.yaml', generation: 2, sinceMs: AT_MS - 60_000 };

const problemsOf = (standing: ConfigurationState['standing']) =>
  problemsOfConfiguration(describeConfigurationState({ ...IN_USE, standing }));

it('a file that is in use is no problem, nor one that has just begun to wait', () => {
  expect(problemsOfConfiguration(undefined)).toEqual([]);
  expect(problemsOf({ state: 'current' })).toEqual([]);
  expect(problemsOf({ state: 'waiting', sinceMs: AT_MS, overdue: false, missing: () => [] })).toEqual([]);
});

it('a file that was refused, or waits for too long, is one: since when, why, what stays in use', () => {
  const refused = { state: 'refused', atMs: AT_MS, result: 'invalid', report: 'line 3: …' } as const;
  expect(problemsOf(refused)).toMatchObject([
    {
      level: 'warning',
      since: '2030-01-01T03:04:05.000Z',
      about: { kind: 'configuration', name: '/etc/token-sidecar.yaml' },
      reason: '/etc/token-sidecar.yaml is not valid: its errors are told with the configuration',
      next: 'generation 2 stays in use until the file changes again',
      runbook: 'TokenSidecarConfigReloadFailing',
    },
  ]);
  expect(problemsOf({ ...refused, result: 'restart_required' })[0]?.reason).toContain(
    'only another start can',
  );
  const waiting = {
    state: 'waiting',
    sinceMs: AT_MS,
    overdue: true,
    missing: () => ['No token yet.'],
  } as const;
  expect(problemsOf(waiting)).toMatchObject([{ reason: 'No token yet.', since: '2030-01-01T03:04:05.000Z' }]);
});
