// In what the classes of llama.cpp lawfully differ from their contract: rows of a file of
// conventions. A release build does not check what its callers must not do (LC-24, LC-80), and a
// call with one of these arguments is no call of an engine. In a debug build assertions refuse most
// of them, as the rules do.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace conventions {

using Rows = std::vector<std::string>;

#ifdef NDEBUG
inline const Rows kBuild{"config build only default"};
inline Rows of_meta() {
  Rows rows = kBuild;
  rows.push_back("accepts resize out_of_range");  // docs/cells.md: a bound of kvoracle
  // LC-24: in a release build misuse of the table of cells is undefined.
  for (const char* operation :
       {"pos_set",     "seq_add",   "seq_rm",      "seq_keep",    "rm",
        "pos_add",     "pos_div",   "ext_set",     "copy",        "paste",
        "is_empty",    "seq_count", "seq_has",     "seq_get",     "pos_get",
        "get_shift",   "pos_in",    "seq_pos_min", "seq_pos_max", "token_at_or_before",
        "seq_pos_get", "ext_get",   "reread"})
    rows.push_back(std::string("accepts ") + operation + " precondition");
  return rows;
}
#else
inline const Rows kBuild{"config build only \"debug\""};
inline Rows of_meta() {
  Rows rows = kBuild;
  rows.push_back("accepts resize out_of_range");  // docs/cells.md: a bound of kvoracle
  // What has no assertion: a number that overflows (LC-80), and a cell that is not there (LC-24).
  for (const char* row :
       {"pos_set precondition: pos #", "pos_add precondition: cell #: delta # overflows",
        "pos_div precondition: cell #: the shift overflows", "pos_div precondition: d #",
        "seq_get precondition: cell # of #", "copy precondition: cell # of #",
        "paste precondition: cell # of #"})
    rows.push_back(std::string("accepts ") + row);
  return rows;
}
#endif

// Of kv, iswa and recurrent.
inline const Rows kBatches{
    "accepts decode precondition: n_ubatch #",                 // LC-80
    "accepts decode precondition: # tokens",                   // docs/cells.md: a bound of kvoracle
    "accepts decode precondition: a token without sequences",  // LC-80
    "accepts decode precondition: no position is left",        // LC-80: positions overflow
    "accepts decode precondition: a position below #",         // LC-80
};

// Of kv and iswa.
inline Rows of_pair() {
  Rows rows = kBuild;
  rows.insert(rows.end(), kBatches.begin(), kBatches.end());
  rows.insert(
      rows.end(),
      {
          "without state_edit",                                           // no call of llama.cpp
          "accepts decode precondition: masks of # tokens and # cells",   // docs/cells.md: a bound
                                                                          // of kvoracle
          "accepts seq_add precondition: a position or shift overflows",  // LC-80
          "accepts seq_div precondition: d is below #, or a shift overflows",  // LC-44, LC-80
          "accepts find_slot precondition: a position below #",
          "accepts find_slot precondition: n_ubatch #",
          "accepts find_slot precondition: # tokens",
          "accepts find_slot precondition: a token without sequences",
          "accepts find_slot precondition: find_slot of several sequences in streams",  // LC-39
          "accepts find_slot precondition: no window half",
          "accepts state_save precondition: partial without a window half",  // a single cache
                                                                             // ignores the flag
          // In streams a sequence that no stream is for is saved as one without cells, if it is
          // below 256 or the cache is empty (docs/cells.md).
          "accepts state_save precondition: sequence #",
          "accepts state_load precondition: partial without a window half",
          "accepts state_load precondition: a state of other halves",  // LC-80
          "accepts state_load precondition: sequence #",
      });
  return rows;
}

inline Rows of_kv() {
  Rows rows = of_pair();
  rows.push_back("config real only default false");  // decodes of the whole engine
  return rows;
}

inline Rows of_recurrent() {
  Rows rows = kBuild;
  rows.insert(rows.end(), kBatches.begin(), kBatches.end());
  rows.insert(rows.end(), {
                              // LC-98: a sequence that cannot be is not checked.
                              "accepts seq_keep precondition: sequence #",
                              "accepts seq_add precondition: sequence #",
                              "accepts seq_div precondition: sequence #",
                              "accepts seq_add precondition: the position overflows",  // LC-80
                              "accepts seq_div precondition: d is below #",            // LC-44
                          });
  return rows;
}

}  // namespace conventions
