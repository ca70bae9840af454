import type { JudgedProfile } from './profile.ts';

/** Where profiles are looked up: in what the API has sent, or in files. */
export interface ProfileSource {
  /** Why they cannot be looked up now; undefined if they can. */
  unread(): string | undefined;
  namespaced(namespace: string, name: string): JudgedProfile | undefined;
  cluster(name: string): JudgedProfile | undefined;
  /** Labels of a namespace; undefined if they are not known. */
  labels(namespace: string): Readonly<Record<string, string>> | undefined;
}
