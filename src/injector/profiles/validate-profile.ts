import type { InferInput } from 'valibot';
import { readShape } from '../../config/file.ts';
import type { Problem, ProblemCode } from '../../platform/problems.ts';
import type { ProfileIdentity, ValidatedProfile, ValidProfile } from './profile.ts';
import {
  credentialSources,
  type FilesOf,
  mostSpecificFirst,
  planMounts,
  profileEntries,
  withMounts,
} from './profile-entries.ts';
import { clusterProfileSchema, FALLBACKS, profileSchema } from './profile-schema.ts';
import { findConflicts, type OwnedProblem, resolveEntries } from './resolve-entries.ts';

/** Characters of JSON. */
const MAX_CHARACTERS = 64 * 1024;

const NAME = 'a name of 1 to 63 lower-case letters, digits and dashes';

/** @param written the object's `spec`. */
export function validateProfile(
  identity: ProfileIdentity,
  written: unknown,
  filesOf: FilesOf,
): ValidatedProfile {
  const problems: Problem[] = [];
  const isNamed = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(identity.name);
  if (!isNamed) problems.push({ key: 'metadata.name', value: identity.name, expected: NAME });
  const text = JSON.stringify(written ?? {});
  if (text.length > MAX_CHARACTERS) {
    const expected = `at most ${MAX_CHARACTERS} characters`;
    problems.push({ key: 'spec', value: String(text.length), expected });
    return { state: 'invalid', identity, namespaces: {}, problems };
  }
  const spec = JSON.parse(text) as InferInput<typeof clusterProfileSchema>;
  const shape: Problem[] = [];
  const schema = identity.kind === 'TokenProfile' ? profileSchema : clusterProfileSchema;
  const isUnderstood = readShape(schema, spec, shape, FALLBACKS) !== undefined;
  problems.push(
    ...shape.map(({ key, meant, ...problem }) => ({
      ...problem,
      key: underSpec(key),
      ...(meant === undefined ? {} : { meant: underSpec(meant) }),
    })),
  );
  if (!isUnderstood)
    return { state: 'invalid', identity, namespaces: {}, problems: withoutRepetitions(problems) };

  const { namespaces = {}, serviceAccounts, ...own } = spec;
  const profile = { state: 'valid', identity, spec: own, namespaces, serviceAccounts } as ValidProfile;
  // A wrong name is reported only once.
  const judgeable = isNamed ? profile : { ...profile, identity: { ...identity, name: 'profile' } };
  problems.push(...validateSpec(judgeable, filesOf));
  if (problems.length === 0) return profile;
  return {
    state: 'invalid',
    identity,
    namespaces: profile.namespaces,
    problems: withoutRepetitions(problems),
  };
}

function validateSpec(profile: ValidProfile, filesOf: FilesOf): readonly Problem[] {
  const { spec } = profile;
  const problems: Problem[] = [...referenceProblems(spec), ...brokerProblems(profile)];
  const areGivenOut = spec.credentials.some(
    ({ output }) => output?.file !== undefined || output?.endpoint === true,
  );
  if (spec.routes === undefined && spec.hosts === undefined && !areGivenOut) {
    problems.push({
      key: 'spec',
      expected: 'routes, hosts or credentials with an output: what the tokens are for',
    });
  }
  if (spec.mode !== undefined && (spec.mode === 'reverse') === (spec.hosts !== undefined)) {
    const expected =
      spec.mode === 'reverse' ? 'another mode, as there are hosts' : 'hosts beside it, or the mode reverse';
    problems.push({ key: 'spec.mode', value: spec.mode, expected });
  }
  const entries = mostSpecificFirst(withMounts(profileEntries(profile), planMounts()));
  for (const { first, second, field, value } of findConflicts(entries)) {
    // Missing names are already reported.
    if (field === 'name' && problems.some(({ key }) => key === `${second.key}.name`)) continue;
    const expected = `another than that of ${first.key}`;
    problems.push({ key: `${second.key}.${field}`, value, expected });
  }
  const found: OwnedProblem[] = [];
  const { understood } = resolveEntries(entries, found);
  const own = problems.length === 0 ? found : found.filter((problem) => !followsFromReferences(problem));
  problems.push(...own.map(({ of: _, ...problem }) => problem));
  for (const credential of entries.credentials) {
    // The files of a faulty credential are not known.
    if (found.some(({ of }) => of === credential)) continue;
    const resolved = understood?.credentials.find(({ name }) => name === credential.entry.name);
    if (resolved !== undefined) credentialSources(credential, resolved, filesOf, problems);
  }
  return problems;
}

/** These are reported in the profile's terms instead. */
function followsFromReferences({ of, code }: OwnedProblem): boolean {
  return of === undefined || (code !== undefined && OF_REFERENCES.has(code));
}

const OF_REFERENCES: ReadonlySet<ProblemCode> = new Set([
  'duplicate_name',
  'unknown_credential',
  'unreachable_route',
]);

function brokerProblems({ identity, spec, serviceAccounts }: ValidProfile): readonly Problem[] {
  const viaBroker = [...spec.credentials.entries()].filter(([, { via }]) => via === 'broker');
  const problems: Problem[] = [];
  if (serviceAccounts !== undefined && viaBroker.length === 0) {
    const expected = 'nothing, as no credential is via broker: only the broker knows service accounts';
    problems.push({ key: 'spec.serviceAccounts', value: serviceAccounts.join(', '), expected });
  }
  for (const [index, { grant, serviceAccountToken, proofOfPossession }] of viaBroker) {
    const key = `spec.credentials[${index}]`;
    if (identity.kind === 'TokenProfile') {
      const expected = 'sidecar, as the broker serves ClusterTokenProfiles alone';
      problems.push({ key: `${key}.via`, value: 'broker', expected });
    }
    if (serviceAccountToken !== undefined) {
      const expected = 'nothing with via: broker, which has no service account of the pod';
      problems.push({ key: `${key}.serviceAccountToken`, expected });
    }
    if (proofOfPossession === 'dpop') {
      const expected =
        'nothing with via: broker, whose tokens are for every pod: a bound token is for one key';
      problems.push({ key: `${key}.proofOfPossession`, value: proofOfPossession, expected });
    }
    if (grant === 'static' || grant === 'token_exchange') {
      const expected =
        'client_credentials or jwt_bearer with via: broker, whose tokens are for every pod and end';
      problems.push({ key: `${key}.grant`, value: grant, expected });
    }
  }
  return problems;
}

function referenceProblems({
  credentials,
  routes = [],
  hosts = [],
}: ValidProfile['spec']): readonly Problem[] {
  const problems: Problem[] = [];
  for (const [list, entries] of Object.entries({ credentials, routes })) {
    entries.forEach(({ name }, index) => {
      if (name !== undefined || entries.length === 1) return;
      problems.push({ key: `spec.${list}[${index}].name`, expected: `a name, as there are several ${list}` });
    });
  }
  const names = credentials.flatMap(({ name }) => name ?? []);
  const all = names.join(', ') || 'none, as the only credential has no name';
  for (const [list, entries] of Object.entries({ routes, hosts })) {
    entries.forEach(({ credential }, index) => {
      const isKnown = credential === undefined ? credentials.length === 1 : names.includes(credential);
      if (isKnown) return;
      problems.push({
        key: `spec.${list}[${index}].credential`,
        ...(credential === undefined ? {} : { value: credential }),
        expected: `the name of one of the credentials: ${all}`,
      });
    });
  }
  return problems;
}

function underSpec(key: string): string {
  return key === '(file)' ? 'spec' : `spec.${key}`;
}

/** A setting that was misspelt or not understood is not also missing. */
function withoutRepetitions(problems: readonly Problem[]): readonly Problem[] {
  const firsts = problems.filter(
    ({ key }, index) => problems.findIndex((other) => other.key === key) === index,
  );
  const said = new Set(firsts.map(({ key }) => key));
  const meant = new Set(firsts.flatMap((problem) => problem.meant ?? []));
  return firsts.filter(
    ({ key, instead = [] }) => !meant.has(key) && !instead.some((name) => said.has(name) || meant.has(name)),
  );
}
