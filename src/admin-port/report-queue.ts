/** Makes a report in its turn. */
export type ReportQueue = <Report>(make: () => Promise<Report>) => Promise<Report>;

/** One report at a time: several at once could fill the memory of this process, which may also serve the API. */
export function createReportQueue(): ReportQueue {
  let last: Promise<unknown> = Promise.resolve();
  return (make) => {
    const made = last.then(make);
    last = made.catch(() => undefined);
    return made;
  };
}
