// Laws of contract `cells` that catch a fault alone.
#include "properties/campaign/law_trial.hpp"

namespace kvo {

INSTANTIATE_TEST_SUITE_P(
    Cells, EachLaw,
    testing::Values(
        LawTrial{"recompute_equivalence", "cells.meta@mutant:owner_stays", 100},
        LawTrial{"recompute_equivalence", "cells.meta@mutant:shift_is_the_last_one", 100},
        LawTrial{"recompute_equivalence", "cells.kv@mutant:masked_cell_one_early", 100},
        LawTrial{"recompute_equivalence", "cells.kv@mutant:shared_cells_are_taken", 100},
        LawTrial{"recompute_equivalence", "cells.kv@mutant:removed_by_cell", 100},
        LawTrial{"recompute_equivalence", "cells.kv@mutant:first_stream_is_turned", 100},
        LawTrial{"recompute_equivalence", "cells.kv@mutant:saved_to_the_head", 100},
        LawTrial{"recompute_equivalence", "cells.kv@mutant:mask_by_cell", 100},
        LawTrial{"recompute_equivalence", "cells.kv@mutant:fast_rows_not_copied_behind", 100},
        LawTrial{"recompute_equivalence", "cells.iswa@mutant:rehearsal_is_not_undone", 100},
        LawTrial{"a_b_a", "cells.iswa@mutant:rehearsal_is_not_undone", 100},
        LawTrial{"saved_and_loaded_again", "cells.kv@mutant:saved_to_the_head", 100}));

}  // namespace kvo
