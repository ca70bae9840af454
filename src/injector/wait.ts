import { setTimeout } from 'node:timers/promises';
import type { CommandContext } from '../config/command.ts';
import { type GivenValues, readValue } from '../config/settings.ts';
import { formats } from '../config/values.ts';
import { SidecarError } from '../platform/errors.ts';
import { connectKubernetes } from '../platform/kubernetes/client.ts';
import type { Problem } from '../platform/problems.ts';
import { ConfigurationError } from '../platform/problems.ts';
import { systemClock } from '../platform/time/clock.ts';
import { objectName } from './pod/annotations.ts';
import type { INJECTOR_SETTINGS } from './settings.ts';
import { waitForWebhook } from './webhook-check.ts';

type Given = Pick<GivenValues<typeof INJECTOR_SETTINGS>, 'kubeconfig' | 'namespace' | 'wait-timeout'>;

/** @throws {SidecarError} `kubernetes_api` if the webhook never answers. */
export async function waitForInjector(given: Given, context: CommandContext): Promise<number> {
  const problems: Problem[] = [];
  const timeoutMs = readValue(given['wait-timeout'], formats.duration, problems) ?? 60_000;
  const named = readValue(given.namespace, objectName, problems);
  if (problems.length > 0) throw new ConfigurationError(problems);
  const api = connectKubernetes(given.kubeconfig?.text, systemClock);
  const namespace = named ?? api.namespace;
  if (namespace === undefined) {
    throw new SidecarError('configuration', '--namespace: expected the namespace that the injector runs in');
  }
  const { signal } = context.shutdown;
  await waitForWebhook(api, {
    namespace,
    timeoutMs,
    clock: systemClock,
    signal,
    // The clock's timer does not keep the process alive.
    pause: (ms) => setTimeout(ms, undefined, { signal }).catch(() => undefined),
    onWaiting: (reason) => context.stderr.write(`waiting for the webhook: ${reason}\n`),
  });
  context.stdout.write('the webhook answers the API server\n');
  return 0;
}
