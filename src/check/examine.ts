/** Runs all steps of all parts, a few parts at a time. */

import type { Config } from '../config/config.ts';
import { fewAtOnce } from '../platform/limits/few-at-once.ts';
import { examineConfiguration } from './configuration.ts';
import { type ExaminedCredential, examineCredential } from './credential.ts';
import type { Examination } from './examination.ts';
import { about, type Finding } from './finding.ts';
import { examineListeners } from './listeners.ts';
import { examineUpstream, upstreamsOf } from './upstream.ts';

/** @param probes paths to request from the upstream of a route, by the route's name. */
export async function examine(
  config: Config,
  probes: ReadonlyMap<string, string>,
  examination: Examination,
): Promise<Finding[]> {
  const listeners = examination.isOffline ? [] : await examineListeners(config, examination);
  const credentials = await fewAtOnce(config.credentials, (one) => examineCredential(one, examination));
  const tokens = new Map(config.credentials.map(({ name }, index) => [name, credentials[index]?.token]));
  const upstreams = await fewAtOnce(upstreamsOf(config, probes), (one) =>
    examineUpstream(one, config, tokens.get(one.policy.credential), examination),
  );
  return [
    ...examineConfiguration(config),
    ...listeners,
    ...credentials.flatMap((each: ExaminedCredential) => each.findings),
    ...upstreams.flat(),
  ];
}

/** Reports that the time was up before all parts had been examined; empty if it sufficed. */
export function examineTime({ signal }: Pick<Examination, 'signal'>): Finding[] {
  if (!signal.aborted) return [];
  const remedy = 'look at the steps above that had no answer, or give more time by --check-timeout';
  return [about(undefined).failure('time', 'provider_unavailable', 'the time for all steps was up', remedy)];
}
